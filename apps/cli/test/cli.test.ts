import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterEach, expect, test, vi } from "vitest";
import * as z from "zod";

const program = fileURLToPath(new URL("../src/main.ts", import.meta.url));
const agentProgram = fileURLToPath(new URL("../../agent/src/main.ts", import.meta.url));
const started: ChildProcess[] = [];

afterEach(() => {
  for (const child of started) child.kill("SIGKILL");
});

/** Runs a command to its end; a broker is named only by `env`. */
function holdpoint(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const own = Object.entries(process.env).filter(([name]) => !/^(NATS|HOLDPOINT)_/.test(name));
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...args], {
    env: { ...Object.fromEntries(own), ...env },
    encoding: "utf8",
  });
  return { status, stdout, stderr };
}

const Up = z.object({
  run: z.string(),
  url: z.string(),
  folder: z.string(),
  environments: z.object({ operator: z.string() }),
});

/** A run that is up, what it said, and how it ended. */
async function up(env: Readonly<Record<string, string>> = {}) {
  const stdio: ["ignore", "pipe", "pipe"] = ["ignore", "pipe", "pipe"];
  const child = spawn(process.execPath, [program, "up", "--json"], { env: { ...process.env, ...env }, stdio });
  started.push(child);
  let printed = "";
  const told: string[] = [];
  child.stdout.setEncoding("utf8").on("data", (text: string) => (printed += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => told.push(text));
  const exited = new Promise<number | null>((resolve) => child.once("exit", (code) => resolve(code)));
  await vi.waitFor(() => expect(printed).toContain("\n"), { timeout: 90_000, interval: 50 });
  return { child, exited, said: Up.parse(JSON.parse(printed)), told: () => told.join("") };
}

function childrenOf(pid: number | undefined): readonly number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").map(Number);
}

/** The nats-server that a run that is up has now. */
function brokersOf(pid: number | undefined): readonly number[] {
  return childrenOf(pid).filter((child) => readFileSync(`/proc/${child}/cmdline`, "utf8").includes("nats-server"));
}

/** What a shell knows after reading the file. */
function environmentIn(path: string): Record<string, string> {
  const lines = readFileSync(path, "utf8").matchAll(/^export (\w+)='(.*)'$/gm);
  return Object.fromEntries([...lines].map(([, name = "", value = ""]) => [name, value] as const));
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

const notForUp = { HOLDPOINT_WORKER: "1", HOLDPOINT_METRICS: "9464" };

test.each([
  [["nonsense"], /No command registered for `nonsense`/],
  [["prepare"], /--checkpoint/],
  [["prepare", "--checkpoint", "-c"], /./],
  [["retire", "--rollouts", "g0-r1"], /expected <rollout>\/<attempt>/],
  [["status", "--run", "a.b"], /expected 1 to 128 of A-Z a-z 0-9 _ -/],
  [["demo", "--rollouts", "1"], /expected a whole number from 4 to 4096/],
  [["demo", "--rollouts", "6"], /expected a multiple of 4/],
  [["demo", "--chaos", "much"], /none|some|heavy/],
  [["status"], /no broker is named: set NATS_URL/],
  [["status"], /"a.b" for run: expected 1 to 128/, { HOLDPOINT_RUN: "a.b" }],
  [["up", "--agent", "/no/such.ts"], /no file .*such\.ts; expected a program that Node runs/],
  [["up", "--agent", "test/refused-agent.ts"], /agent cannot run: [^]*defineAgent "misspelt"/],
  [["up"], /HOLDPOINT_WORKER: .* one process of each role[^]*HOLDPOINT_METRICS: one port/, notForUp],
  [["up"], /coordinator cannot run: [^]*HOLDPOINT_LEASE_GRACE_MS/, { HOLDPOINT_LEASE_GRACE_MS: "-1" }],
])("wrong usage ends with 2 and says why: %j", (args, why, env?: Readonly<Record<string, string>>) => {
  const { status, stderr } = holdpoint(args, env);

  expect(stderr).toMatch(why);
  expect(status).toBe(2);
});

test("a broker that is not there ends with 1, and with --json the problem is JSON", () => {
  const { status, stdout } = holdpoint(["status", "--json"], { NATS_URL: "nats://127.0.0.1:1" });

  expect(JSON.parse(stdout)).toMatchObject({ ok: false, problem: { code: "unavailable" } });
  expect(status).toBe(1);
});

test("a run that is up is commanded by the names of the protocol, and leaves nothing when it is interrupted", async () => {
  const { child, exited, said, told } = await up({ HOLDPOINT_RUN: "mine", HOLDPOINT_SEED: "7" });
  const env = environmentIn(said.environments.operator);

  const status = holdpoint(["status"], env);
  expect(status).toMatchObject({ status: 0, stderr: "" });
  for (const role of ["environment", "agent", "model", "resources"]) {
    expect(status.stdout).toContain(`${role} main: exported, 1 worker`);
  }
  const prepared: unknown = JSON.parse(holdpoint(["prepare", "--checkpoint", "c1", "--json"], env).stdout);
  expect(prepared).toMatchObject({ ok: true, result: { phase: "prepared", ready: true } });
  const conflict = holdpoint(["prepare", "--checkpoint", "c2"], env);
  expect(conflict.stdout).toContain("checkpoint_conflict");
  expect(conflict.status).toBe(1);
  expect(holdpoint(["resume", "--checkpoint", "c1"], env).status).toBe(0);
  expect(holdpoint(["doctor"], env)).toMatchObject({ status: 0 });
  expect(said.run).toBe("mine");
  expect(told()).toContain("told what is set as HOLDPOINT_SEED");

  child.kill("SIGINT");
  expect(await exited).toBe(0);
  expect(() => readFileSync(said.environments.operator)).toThrow("ENOENT");
});

test("a broker that is killed is started again in place, and everybody goes on from the log", async () => {
  const { child, exited, said, told } = await up();
  const env = environmentIn(said.environments.operator);
  expect(holdpoint(["checkpoint", "--checkpoint", "before"], env)).toMatchObject({ status: 0 });
  const before = brokersOf(child.pid);
  expect(before).toHaveLength(1);

  for (const pid of before) process.kill(pid, "SIGKILL");
  await vi.waitFor(() => expect(told()).toContain("the broker serves again"), { timeout: 60_000, interval: 50 });

  expect(told()).toContain("the broker ended by itself and is started again");
  expect(brokersOf(child.pid)).toHaveLength(1);
  expect(brokersOf(child.pid)).not.toEqual(before);
  expect(holdpoint(["checkpoint", "--checkpoint", "after"], env)).toMatchObject({ status: 0 });
  expect(holdpoint(["status"], env).stdout).toContain("restorable: before, after");
  child.kill("SIGINT");
  expect(await exited).toBe(0);
});

test("a process of a run that is up whose place another one has taken is not started again", async () => {
  const { child, exited, told } = await up();
  const agent = childrenOf(child.pid).find((pid) => readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("/agent/"));
  const lines = readFileSync(`/proc/${agent}/environ`, "utf8").split("\0");
  const env = Object.fromEntries(lines.map((line) => [line.split("=")[0], line.slice(line.indexOf("=") + 1)]));
  started.push(spawn(process.execPath, [agentProgram], { env, stdio: "ignore" }));

  await vi.waitFor(() => expect(told()).toContain("agent ended with code 3"), { timeout: 60_000, interval: 50 });
  expect(told()).toContain("another process has taken its place, so it is not started again");
  child.kill("SIGINT");
  expect(await exited).toBe(0);
});

test("a run that is not there is said at once, by whichever name it was meant", async () => {
  const { child, exited, said } = await up();
  const env = environmentIn(said.environments.operator);
  const byFlag = holdpoint(["status", "--run", "nowhere", "--json"], env);
  const byVariable = holdpoint(["resume", "--checkpoint", "x"], { ...env, HOLDPOINT_RUN: "elsewhere" });

  expect(JSON.parse(byFlag.stdout)).toMatchObject({ ok: false, problem: { code: "not_found" } });
  expect(byFlag.status).toBe(1);
  expect(byVariable.stderr).toMatch(/no such run on this broker: elsewhere .*--run or HOLDPOINT_RUN; `holdpoint up`/);
  child.kill("SIGINT");
  expect(await exited).toBe(0);
});

test("the processes of a run that is up end with it, also when it is killed", async () => {
  const { child, exited, said } = await up();
  const pids = childrenOf(child.pid);
  expect(pids.length).toBeGreaterThan(5);

  child.kill("SIGKILL");
  await exited;

  await vi.waitFor(() => expect(pids.filter(isAlive)).toEqual([]), { timeout: 30_000, interval: 50 });
  spawnSync("rm", ["-rf", said.folder]);
});
