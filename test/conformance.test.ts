/** The conformance kit on our own participants, and on one that is written in another language: the wire is the contract. */
import { brokerEnvironment } from "@holdpoint/broker";
import { Controller } from "@holdpoint/client";
import { openLog } from "@holdpoint/jetstream";
import { packages, taskOf } from "@holdpoint/repair";
import {
  type ConformanceTarget,
  examine,
  type ExamineOptions,
  startTestBroker,
  type TestBroker,
} from "@holdpoint/testing";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { pythonEnvironment } from "./python.ts";

const folder = mkdtempSync(join(tmpdir(), "holdpoint-conformance-"));
let broker: TestBroker;
const coordinators: ChildProcess[] = [];

beforeAll(async () => {
  broker = await startTestBroker();
});
afterAll(async () => {
  for (const coordinator of coordinators) coordinator.kill("SIGKILL");
  await broker.stop();
  rmSync(folder, { recursive: true });
});

/** A coordinator that leads `run`. */
async function coordinate(run: string): Promise<void> {
  const { PATH = "" } = process.env;
  const env = { PATH, HOLDPOINT_RUN: run, ...brokerEnvironment(broker.server, "coordinator") };
  const child = spawn(process.execPath, ["apps/coordinator/src/main.ts"], {
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  coordinators.push(child);
  for await (const line of createInterface({ input: child.stdout })) if (line.includes("coordinator leads")) return;
  await once(child, "exit");
  throw new Error("the coordinator ended before it led");
}

/** What of the contract does not hold, in words. */
async function broken(
  target: ConformanceTarget,
  options: Pick<ExamineOptions, "only" | "patienceMs"> = {},
): Promise<readonly string[]> {
  const run = await broker.newRun();
  await coordinate(run);
  const operator = await broker.connectAs("operator");
  const log = openLog(operator, run);
  const findings = await examine({
    run,
    log,
    target,
    controller: new Controller({ connection: operator, log, run }),
    connectAs: (role) => broker.connectAs(role),
    environmentOf: (role) => brokerEnvironment(broker.server, role),
    ...options,
  });
  return findings.filter(({ holds }) => !holds).map(({ says, why }) => `not true: ${says}: ${why}`);
}

const [spec] = packages;
if (spec === undefined) throw new Error("the repair workload has no packages");
const seed = { task: taskOf({ seed: 1, spec }), seed: 1 };
const node = process.execPath;

test("our environment holds the contract", async () => {
  expect(
    await broken({ role: "environment", command: [node, "apps/environment/src/main.ts"], workload: { seed } }),
  ).toEqual([]);
});

test("our agent holds the contract", async () => {
  const workload = { seed, tool: { name: "list_files", arguments: {} } };
  expect(await broken({ role: "agent", command: [node, "apps/agent/src/main.ts"], workload })).toEqual([]);
});

test("our resources server holds the contract", async () => {
  const env = { HOLDPOINT_STATE_DIR: join(folder, "resources") };
  const workload = { seed, tool: { name: "list_files", arguments: {} } };
  expect(await broken({ role: "resources", command: [node, "apps/resources/src/main.ts"], env, workload })).toEqual([]);
});

/** Of a conversation as long as the turn says. */
function request(turn: number): object {
  const messages = Array.from({ length: turn + 1 }, (_, index) => ({ role: "user", content: `turn ${index}` }));
  return { model: "scripted", messages };
}

test("our model server holds the contract", async () => {
  const script = join(folder, "script.json");
  writeFileSync(script, JSON.stringify(["list_files", "run_tests"].map((name) => [{ name, arguments: {} }])));
  const command: [string, string] = [node, "apps/model/src/main.ts"];
  const env = { HOLDPOINT_SCRIPT_FILE: script };
  expect(await broken({ role: "model", command, env, workload: { request } })).toEqual([]);
});

describe("a resources server in Python", () => {
  const workload = { seed: { target: 3 }, tool: { name: "add", arguments: { by: 1 } } };

  /** The Python participant in `sources`. */
  async function python(sources: string, skip: (why: string) => void): Promise<ConformanceTarget> {
    const env = await pythonEnvironment();
    if (typeof env === "string") skip(env);
    const known = typeof env === "string" ? {} : env;
    return { role: "resources", command: ["python3", join(sources, "counter.py")], env: known, workload };
  }

  test("holds the contract", async ({ skip }) => {
    expect(await broken(await python("test/python", skip))).toEqual([]);
  });

  /** Rules that it keeps, each taken out, and the promise that has to be found broken without it. */
  const faults = [
    ["counter.py", "if known is not None:\n                return known", "", "is answered again as before"],
    ["counter.py", "while self.gate.closed is not None:", "while False:", "new work waits"],
    ["counter.py", "self.gate.marks.get(episode", "{}.get(episode", "is refused as stale"],
    ["counter.py", "origin.copy(attempt=", "origin.copy(results={}, attempt=", "a restore goes on"],
    ["counter.py", 'raise Problem("invalid_request", "expected', 'raise Problem("not_found", "expected', "typed error"],
    ["log.py", "self.fenced.set()", "self._end = last.seq; return await self._publish([])", "takes over"],
    ["gate.py", "self.closed = checkpoint", "pass", "new work waits"],
    ["log.py", "DeliverPolicy.ALL", "DeliverPolicy.NEW", "killed and started again"],
  ] as const;

  test.each(faults)("in whose %s `%s` is `%s` is found out: not true that %s", async (file, rule, instead, says) => {
    const sources = mkdtempSync(join(folder, "broken-"));
    cpSync("test/python", sources, { recursive: true });
    const text = readFileSync(join(sources, file), "utf8");
    expect(text).toContain(rule);
    writeFileSync(join(sources, file), text.replace(rule, instead));
    const target = await python(sources, (why) => expect.unreachable(why));
    const found = await broken(target, { only: (promise) => promise.includes(says), patienceMs: 3_000 });
    expect(found).toHaveLength(1);
  });
});
