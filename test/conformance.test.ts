/** The conformance kit on our own participants, and on one that is written in another language: the wire is the contract. */
import { brokerEnvironment } from "@holdpoint/broker";
import { Controller } from "@holdpoint/client";
import { openLog } from "@holdpoint/jetstream";
import { packages, taskOf } from "@holdpoint/repair";
import { type ConformanceTarget, examine, startTestBroker, type TestBroker } from "@holdpoint/testing";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, expect, test } from "vitest";

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
  const child = spawn(process.execPath, ["apps/coordinator/src/main.ts"], { env, stdio: ["ignore", "pipe", "inherit"] });
  coordinators.push(child);
  for await (const line of createInterface({ input: child.stdout })) if (line.includes("coordinator leads")) return;
  await once(child, "exit");
  throw new Error("the coordinator ended before it led");
}

/** What of the contract does not hold, in words. */
async function broken(target: ConformanceTarget): Promise<readonly string[]> {
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
  });
  return findings.filter(({ holds }) => !holds).map(({ says, why }) => `not true: ${says}: ${why}`);
}

const [spec] = packages;
if (spec === undefined) throw new Error("the repair workload has no packages");
const seed = { task: taskOf({ seed: 1, spec }), seed: 1 };
const node = process.execPath;

test("our environment holds the contract", async () => {
  expect(await broken({ role: "environment", command: [node, "apps/environment/src/main.ts"], workload: { seed } })).toEqual([]);
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

test("our model server holds the contract", async () => {
  const script = join(folder, "script.json");
  writeFileSync(script, JSON.stringify(["list_files", "run_tests"].map((name) => [{ name, arguments: {} }])));
  const request = (turn: number) => ({
    model: "scripted",
    messages: Array.from({ length: turn + 1 }, (_, index) => ({ role: "user", content: `turn ${index}` })),
  });
  const command: [string, string] = [node, "apps/model/src/main.ts"];
  const env = { HOLDPOINT_SCRIPT_FILE: script };
  expect(await broken({ role: "model", command, env, workload: { request } })).toEqual([]);
});
