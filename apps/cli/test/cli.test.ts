import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterEach, expect, test, vi } from "vitest";
import * as z from "zod";

const program = fileURLToPath(new URL("../src/main.ts", import.meta.url));
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

const Up = z.object({ url: z.string(), folder: z.string(), environments: z.object({ operator: z.string() }) });

/** A run that is up, what it said, and how it ended. */
async function up() {
  const child = spawn(process.execPath, [program, "up", "--json"], { stdio: ["ignore", "pipe", "inherit"] });
  started.push(child);
  let printed = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (printed += text));
  const exited = new Promise<number | null>((resolve) => child.once("exit", (code) => resolve(code)));
  await vi.waitFor(() => expect(printed).toContain("\n"), { timeout: 90_000, interval: 50 });
  return { child, exited, said: Up.parse(JSON.parse(printed)) };
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
])("wrong usage ends with 2 and says why: %j", (args, why) => {
  const { status, stderr } = holdpoint(args);

  expect(stderr).toMatch(why);
  expect(status).toBe(2);
});

test("a broker that is not there ends with 1, and with --json the problem is JSON", () => {
  const { status, stdout } = holdpoint(["status", "--json"], { NATS_URL: "nats://127.0.0.1:1" });

  expect(JSON.parse(stdout)).toMatchObject({ ok: false, problem: { code: "unavailable" } });
  expect(status).toBe(1);
});

test("a run that is up is commanded by the names of the protocol, and leaves nothing when it is interrupted", async () => {
  const { child, exited, said } = await up();
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

  child.kill("SIGINT");
  expect(await exited).toBe(0);
  expect(() => readFileSync(said.environments.operator)).toThrow("ENOENT");
});

test("the processes of a run that is up end with it, also when it is killed", async () => {
  const { child, exited, said } = await up();
  const pids = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, "utf8").trim().split(" ").map(Number);
  expect(pids.length).toBeGreaterThan(5);

  child.kill("SIGKILL");
  await exited;

  await vi.waitFor(() => expect(pids.filter(isAlive)).toEqual([]), { timeout: 30_000, interval: 50 });
  spawnSync("rm", ["-rf", said.folder]);
});
