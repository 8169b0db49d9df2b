/** The tutorial for authors of participants: its code is what is run here, and it does what the text says. */
import { decodeEvents, eventSchema } from "@holdpoint/eventsourcing";
import { type Connection, connectTo, openLog } from "@holdpoint/jetstream";
import { Controller } from "@holdpoint/client";
import { filters, logEvents, type Role, roles, RpcReply, seedSubject } from "@holdpoint/schemas";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startSystem, type System } from "./system.ts";

const environmentEvents = eventSchema(logEvents.environment);
const resourcesEvents = eventSchema(logEvents.resources);
const document = readFileSync("docs/participants.md", "utf8");
const examples = roles.map((role) => `docs/examples/counter-${role}.ts`);

/** The code that the document shows for the file of that name. */
function shown(file: string): string | undefined {
  const [, after = ""] = document.split(`<!-- ${file} -->\n\n\`\`\`ts\n`);
  return after === "" ? undefined : after.split("```\n")[0];
}

test.each(examples)("the document shows %s as it is", (file) => {
  expect(shown(file)).toBe(readFileSync(file, "utf8"));
});

test("every name that the document imports or explains is exported by the package", async () => {
  const exported = new Set(Object.keys(await import("@holdpoint/participant")));
  const named = [...document.matchAll(/`((?:define|run|serve)[A-Z]\w*)`/g)].map(([, name = ""]) => name);
  expect(named.length).toBeGreaterThan(8);
  expect(named.filter((name) => !exported.has(name))).toEqual([]);
});

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await pause(5);
}

describe("the counter of the tutorial", () => {
  let system: System;
  let trainer: Connection;
  let operator: Connection;

  beforeAll(async () => {
    system = await startSystem(roles.flatMap((role) => [`--${role}`, `docs/examples/counter-${role}.ts`]));
    trainer = await connectAs("trainer");
    operator = await connectAs("operator");
  });
  afterAll(async () => {
    await Promise.all([trainer.close(), operator.close()]);
    await system.stop();
  });

  function connectAs(user: "trainer" | "operator"): Promise<Connection> {
    const { NATS_URL: url = "", NATS_PASSWORD: password = "" } = system.environmentOf(user);
    return connectTo({ url, user, password, name: "tutorial" });
  }

  async function dispatch(rollout: string, attempt: number, target: number): Promise<void> {
    const servers = { agent: "main", resources: "main" };
    const body = { rollout, attempt, task: { target }, ...servers, budgetMs: null, policyVersion: 0 };
    const reply = await trainer.request(seedSubject("demo", "environment", "main"), JSON.stringify(body));
    expect(RpcReply.parse(JSON.parse(new TextDecoder().decode(reply)))).toMatchObject({ ok: true });
  }

  /** How many additions of the rollout are in the log, now. */
  async function added(rollout: string): Promise<number> {
    const log = openLog(operator, "demo");
    let count = 0;
    await log.read({ upTo: await log.lastSequence(), subjects: [filters.logsOf("demo", "resources")] }, (message) => {
      for (const { event } of decodeEvents(message, resourcesEvents).events) {
        if (event.type === "tool.finished" && event.data.rollout === rollout) count += 1;
      }
    });
    return count;
  }

  /** The event that ends the rollout, whenever it comes. */
  async function ended(rollout: string) {
    const found = Promise.withResolvers<object>();
    const tail = await openLog(operator, "demo").tail({ from: 1, subjects: [filters.results("demo")] }, (message) => {
      for (const { event } of decodeEvents(message, environmentEvents).events) {
        if (event.type === "episode.ended" && event.data.rollout === rollout) found.resolve(event.data);
      }
    });
    const data = await found.promise;
    await tail.stop();
    return data;
  }

  /** Kills what `up` has started as these roles, as the kernel does when memory is short. */
  function kill(...killed: readonly Role[]): void {
    const started = execFileSync("ps", ["-o", "pid=,args=", "--ppid", String(system.process.pid)], {
      encoding: "utf8",
    });
    const lines = started.split("\n").filter((line) => killed.some((role) => line.includes(`counter-${role}.ts`)));
    expect(lines).toHaveLength(killed.length);
    for (const line of lines) process.kill(Number(line.trim().split(" ")[0]), "SIGKILL");
  }

  test("counts to its target, over kills of every process in the middle, and adds nothing twice", async () => {
    await dispatch("r1", 0, 150);
    for (const [at, role] of roles.entries()) {
      await until(async () => (await added("r1")) >= 20 * (at + 1));
      kill(role);
    }
    expect(await ended("r1")).toMatchObject({ attempt: 0, status: "finished", reward: 1 });
    expect(await added("r1")).toBe(150);
  });

  test("goes on from a checkpoint as a new attempt, and what came after the cut is done again", async () => {
    const controller = new Controller({ connection: operator, log: openLog(operator, "demo"), run: "demo" });
    const succeed = async (command: Parameters<Controller["command"]>[0]) =>
      expect(await controller.command({ timeoutMs: 60_000, ...command })).toMatchObject({ ok: true });
    await dispatch("r2", 0, 200);
    await until(async () => (await added("r2")) >= 20);
    await succeed({ operation: "checkpoint", checkpointId: "c1" });
    const atCut = await added("r2");
    await until(async () => (await added("r2")) >= atCut + 20);
    kill(...roles);
    await succeed({ operation: "retire", rollouts: [{ rollout: "r2", attempt: 0 }] });
    await succeed({ operation: "restore", checkpointId: "x1", source: "c1", scope: ["r2"] });
    await succeed({ operation: "resume", checkpointId: "x1" });
    await dispatch("r2", 1, 200);
    expect(await ended("r2")).toMatchObject({ attempt: 1, status: "finished", reward: 1 });
  });

  test("the document's commands are what was done here", () => {
    for (const operation of ["checkpoint", "retire", "restore", "resume"]) {
      expect(document).toContain(`npx holdpoint ${operation} `);
    }
    expect(document).toContain(join("docs", "examples", "counter-agent.ts"));
  });
});
