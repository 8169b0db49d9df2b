/** What authors' code throws where nobody catches it, in the processes of a whole run. */
import { decodeEvents, eventSchema } from "@holdpoint/eventsourcing";
import { type Connection, connectTo, openLog } from "@holdpoint/jetstream";
import { filters, logEvents, roles, RpcReply, seedSubject } from "@holdpoint/schemas";
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startSystem, type System } from "./system.ts";

const environmentEvents = eventSchema(logEvents.environment);
const left = "left a failure that nobody caught: the log of its process says which";
let system: System;
let trainer: Connection;
let operator: Connection;

beforeAll(async () => {
  system = await startSystem(roles.flatMap((role) => [`--${role}`, "test/straying.ts"]));
  trainer = await connectAs("trainer");
  operator = await connectAs("operator");
});
afterAll(async () => {
  await Promise.all([trainer.close(), operator.close()]);
  await system.stop();
});

function connectAs(user: "trainer" | "operator"): Promise<Connection> {
  const { NATS_URL: url = "", NATS_PASSWORD: password = "" } = system.environmentOf(user);
  return connectTo({ url, user, password, name: "strays" });
}

async function dispatch(where: string, gate: string): Promise<void> {
  const servers = { agent: "main", resources: "main" };
  const body = {
    rollout: `r-${where}`,
    attempt: 0,
    task: { where, gate },
    ...servers,
    budgetMs: null,
    policyVersion: 0,
  };
  const reply = await trainer.request(seedSubject(system.run, "environment", "main"), JSON.stringify(body));
  expect(RpcReply.parse(JSON.parse(new TextDecoder().decode(reply)))).toMatchObject({ ok: true });
}

/** The event that ends the rollout, whenever it comes. */
async function ended(where: string) {
  const found = Promise.withResolvers<object>();
  const subjects = [filters.results(system.run)];
  const tail = await openLog(operator, system.run).tail({ from: 1, subjects }, (message) => {
    for (const { event } of decodeEvents(message, environmentEvents).events) {
      if (event.type === "episode.ended" && event.data.rollout === `r-${where}`) found.resolve(event.data);
    }
  });
  const data = await found.promise;
  await tail.stop();
  return data;
}

/** The processes of the run, by their ids. */
function processes(): string[] {
  const started = execFileSync("ps", ["-o", "pid=,args=", "--ppid", String(system.process.pid)], { encoding: "utf8" });
  return started.split("\n").filter((line) => line.includes("straying.ts"));
}

function logs(): string {
  const folder = join(system.folder, "logs");
  return readdirSync(folder)
    .map((file) => readFileSync(join(folder, file), "utf8"))
    .join("");
}

test("a failure that nobody catches ends its own piece of work, by name, and no process or other rollout with it", async () => {
  const gate = join(system.folder, "gate");
  const before = processes();
  expect(before).toHaveLength(roles.length);
  await dispatch("none", gate);
  const whys: readonly (readonly [string, string])[] = [
    ["environment", `run of environment straying ${left}`],
    ["rejection", `activate of straying ${left}`],
    ["timer", `activate of straying ${left}`],
    ["once", "and what it did is not known: the episode has to start over"],
    ["again", `the tool again of straying ${left}`],
    ["policy", `policy straying ${left}`],
    ["verify", `verify.run of straying ${left}`],
  ];
  for (const [where, why] of whys) {
    await dispatch(where, gate);
    expect(await ended(where)).toMatchObject({ status: "failed", reward: null, why: expect.stringContaining(why) });
  }
  writeFileSync(gate, "");
  expect(await ended("none")).toMatchObject({ attempt: 0, status: "finished", reward: 1 });
  expect(processes()).toEqual(before);

  const lines = logs().split("\n");
  for (const [where] of whys) {
    const said = lines.filter((line) => line.includes(`oops of ${where}`));
    expect(said).toEqual([expect.stringContaining(`"rollout":"r-${where}","attempt":0`)]);
  }
});
