import type { Broker } from "@holdpoint/broker";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { leftovers } from "../src/run/leftovers.ts";
import type { ProcessExit } from "../src/run/managed-process.ts";
import { ProcessGuard } from "../src/run/process-guard.ts";
import { type ProcessName, processNames, RunProcesses } from "../src/run/run-processes.ts";

const dummy = fixture("dummy.ts");
const broker: Broker = {
  url: "nats://127.0.0.1:1",
  wsUrl: undefined,
  monitorUrl: undefined,
  credentialsOf: (user) => ({ user, password: `secret-of-${user}`, inboxPrefix: `_INBOX_${user}` }),
};

let folder: string;
let guard: ProcessGuard;
let exits: ProcessExit[];
let mark: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "holdpoint-test-"));
  guard = new ProcessGuard();
  exits = [];
  mark = `mark-${folder.slice(-6)}`;
});

afterEach(async () => {
  guard.close();
  await rm(folder, { recursive: true, force: true });
});

function fixture(name: string): string {
  return fileURLToPath(new URL(name, import.meta.url));
}

async function processesOf(settings: Partial<Record<ProcessName, Record<string, string>>> = {}): Promise<RunProcesses> {
  const processes = new RunProcesses({
    run: "demo",
    folder,
    broker,
    guard,
    mark,
    settings,
    programOf: () => dummy,
    onExit: (exit) => exits.push(exit),
  });
  await processes.prepare();
  return processes;
}

function left(): Promise<readonly string[]> {
  return leftovers({ mark, folder, empty: [] });
}

/** What is left once the kernel has cleared away what was killed. */
async function settled(): Promise<readonly string[]> {
  await until(async () => (await left()).length === 0).catch(() => {});
  return left();
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Looks until `holds`. */
async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  await vi.waitFor(async () => expect(await holds()).toBe(true), { timeout: 30_000, interval: 20 });
}

test("each process is told its run and its own credentials, and what it prints is kept", async () => {
  const processes = await processesOf();
  await processes.of("agent").start({ HOLDPOINT_RESTORE: "latest" });

  await until(async () => (await readFile(processes.logFile("agent"), "utf8")).includes("\n"));
  expect(await readFile(processes.logFile("agent"), "utf8")).toBe('{"run":"demo","restore":"latest"}\n');
  await processes.stopAll();
});

test("what is set for every program, such as LOG_LEVEL and OTEL_…, reaches each process; what tells another run apart does not", async () => {
  vi.stubEnv("LOG_LEVEL", "debug");
  vi.stubEnv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");
  vi.stubEnv("HOLDPOINT_INSTANCE", "other");
  const processes = await processesOf({ coordinator: { HOLDPOINT_LEASE_GRACE_MS: "5" } });
  const environment = processes.environmentOf("coordinator");
  vi.unstubAllEnvs();

  expect(environment).toMatchObject({ LOG_LEVEL: "debug", OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4318" });
  expect(environment).toMatchObject({ HOLDPOINT_LEASE_GRACE_MS: "5", HOLDPOINT_RUN: "demo" });
  expect(environment).not.toHaveProperty("HOLDPOINT_INSTANCE");
});

test("a killed process is gone, its end says so, and it can be started again", async () => {
  const processes = await processesOf();
  const agent = processes.of("agent");
  await agent.start();
  const before = agent.pid;
  agent.kill();
  await agent.exited();
  expect(isAlive(before)).toBe(false);

  await agent.start();
  agent.kill();
  await agent.exited();

  expect(exits).toMatchObject([
    { process: "agent", pid: before, signal: "SIGKILL", cause: "killed", killedBefore: 0 },
    { process: "agent", signal: "SIGKILL", cause: "killed", killedBefore: 1 },
  ]);
});

test("what a process started dies with it", async () => {
  const processes = await processesOf({ resources: { DUMMY_CHILD: "attached" } });
  await processes.of("resources").start();
  await until(async () => (await left()).length === 2);

  await processes.killAll();

  expect(await settled()).toEqual([]);
});

test("a process that ends by itself is told apart from one that was stopped", async () => {
  const processes = await processesOf({ trainer: { DUMMY_EXIT: "7" } });
  await processes.of("trainer").start();
  await processes.of("agent").start();
  await until(async () => (await readFile(processes.logFile("agent"), "utf8")).includes("\n"));
  await until(() => exits.length === 1);
  await processes.stopAll();

  expect(exits).toMatchObject([
    { process: "trainer", code: 7, cause: "own" },
    { process: "agent", code: 0, cause: "stopped" },
  ]);
});

test("everything is killed at once", async () => {
  const processes = await processesOf();
  for (const name of processNames) await processes.of(name).start();
  expect(processes.running()).toHaveLength(processNames.length);

  await processes.killAll();

  expect(processes.running()).toEqual([]);
  expect(await settled()).toEqual([]);
});

test("a process that a dead one left behind in a group of its own is found", async () => {
  const processes = await processesOf({ resources: { DUMMY_CHILD: "detached" } });
  await processes.of("resources").start();
  await until(async () => (await left()).length === 2);
  await processes.killAll();

  const found = await left();

  expect(found).toHaveLength(1);
  expect(found[0]).toMatch(/^process \d+ is still there: sleep 1000$/);
  process.kill(Number(found[0]?.split(" ")[1]), "SIGKILL");
});

test("a folder that should be empty and is not is found", async () => {
  await writeFile(join(folder, "sandbox-1"), "");
  const empty = [{ path: folder, what: "sandboxes" }];

  expect(await leftovers({ mark, folder, empty })).toEqual([`1 sandboxes left in ${folder}: sandbox-1`]);
  expect(await leftovers({ mark, folder, empty: [{ path: join(folder, "none"), what: "sandboxes" }] })).toEqual([]);
});

test.each(["SIGKILL", "SIGTERM", "SIGINT"] as const)("our processes end with us when we end by %s", async (signal) => {
  const supervisor = spawn(process.execPath, [fixture("supervise-and-die.ts")], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line]: unknown[] = await once(supervisor.stdout, "data");
  const pid = Number(String(line));
  expect(isAlive(pid)).toBe(true);

  supervisor.kill(signal);

  await until(() => !isAlive(pid));
});
