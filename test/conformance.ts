/** Examining participants by the conformance kit, on a broker of the test file, each in a run with a coordinator of its own. */
import { brokerEnvironment } from "@holdpoint/broker";
import { Controller } from "@holdpoint/client";
import { openLog } from "@holdpoint/jetstream";
import {
  type ConformanceTarget,
  examine,
  type ExamineOptions,
  startTestBroker,
  type TestBroker,
} from "@holdpoint/testing";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll } from "vitest";

/** Gone when the tests of the file are over. */
export const folder = mkdtempSync(join(tmpdir(), "holdpoint-conformance-"));
let broker: TestBroker;
let coordinator: ChildProcess | undefined;

beforeAll(async () => {
  broker = await startTestBroker();
});
afterAll(async () => {
  coordinator?.kill("SIGKILL");
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
  coordinator?.kill("SIGKILL"); // of the examination before
  coordinator = child;
  const lines = createInterface({ input: child.stdout });
  const leads = new Promise<void>((resolve) =>
    lines.on("line", (line) => line.includes("coordinator leads") && resolve()),
  );
  const ended = once(child, "exit").then(() => Promise.reject(new Error("the coordinator ended before it led")));
  await Promise.race([leads, ended]);
  ended.catch(() => {}); // killed when the tests are over
}

/** What of the contract does not hold, in words. */
export async function broken(
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
