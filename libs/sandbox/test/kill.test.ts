import { dirProvider, openCheckpointer } from "@holdpoint/sandbox";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterEach, expect, test } from "vitest";
import { isRunning, thisProcess } from "../src/leftovers.ts";
import { freshPath, openWith, until } from "./scratch.ts";

const victims: ChildProcess[] = [];
afterEach(() => {
  for (const victim of victims.splice(0)) victim.kill("SIGKILL");
});

function start(root: string, what: string): ChildProcess {
  const script = fileURLToPath(new URL("victim.ts", import.meta.url));
  const victim = spawn(process.execPath, [script, root, what], { stdio: ["ignore", "ignore", "inherit"] });
  victims.push(victim);
  return victim;
}

async function kill(victim: ChildProcess): Promise<void> {
  victim.kill("SIGKILL");
  await once(victim, "exit");
}

function runs(pid: string): boolean {
  const path = `/proc/${pid.trim()}/stat`;
  return existsSync(path) && !/\) [ZX]/.test(readFileSync(path, "latin1"));
}

/** A process, named as `thisProcess` is. */
function nameOf(pid: number | undefined): string {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return `${pid}-${fields[19]}`;
}

test("a snapshot that kill -9 cuts short is garbage, and its sandbox is as it was", async () => {
  const { root, folder } = await openWith();
  for (let index = 0; index < 400; index += 1) writeFileSync(join(folder, `f${index}`), String(index));
  const [, signal]: unknown[] = await once(start(root, "snapshot"), "exit");
  expect(signal).toBe("SIGKILL");
  const left = readdirSync(join(root, "snapshots")).map((name) => join(root, "snapshots", name));
  expect(left).toHaveLength(1);
  expect(existsSync(join(left[0] ?? "", "manifest.json"))).toBe(false);

  const again = await dirProvider({ root });
  expect(await again.listSnapshots()).toEqual([]);
  expect(await again.listLeftovers()).toEqual(left);
  await again.removeLeftovers();
  expect(readdirSync(join(root, "snapshots"))).toEqual([]);
  expect((await again.snapshot("s", "half")).files).toBe(401);
});

test("what a process that runs has in hand is no leftover, be it this one or another", async () => {
  const { root, folder, provider } = await openWith();
  for (let index = 0; index < 400; index += 1) writeFileSync(join(folder, `f${index}`), String(index));
  const victim = start(root, "exec");
  await until(() => existsSync(join(root, "sandboxes/s/child")));
  const theirs = join(root, "snapshots", `.tmp-${nameOf(victim.pid)}-1`);
  mkdirSync(theirs);
  const taking = provider.snapshot("s", "c1");
  while (readdirSync(join(root, "snapshots")).length < 2) await setImmediate();
  expect(existsSync(join(root, "snapshots/c1"))).toBe(false);
  expect(await provider.listLeftovers()).toEqual([]);
  await taking;
  await kill(victim);
  expect(await provider.listLeftovers()).toEqual([theirs]);
  await dirProvider({ root }); // ends what the victim had started
});

test("what a killed process had running in a sandbox is killed when its successor opens the provider", async () => {
  const { root, folder } = await openWith();
  const victim = start(root, "exec");
  const written = (name: string) => existsSync(join(folder, name)) && readFileSync(join(folder, name), "utf8") !== "";
  await until(() => written("child"));
  const pids = ["stray", "child"].map((name) => readFileSync(join(folder, name), "utf8"));

  await dirProvider({ root });
  expect(pids.map(runs)).toEqual([true, true]); // their owner runs

  await kill(victim);
  expect(pids.map(runs)).toEqual([true, true]);
  await dirProvider({ root });
  expect(pids.map(runs)).toEqual([false, false]);
});

test("a snapshot of a process that still runs is foreign to others, and no longer once it has died", async () => {
  const { root, provider } = await openWith();
  await provider.snapshot("s", "mine");
  const victim = start(root, "exec");
  await until(() => existsSync(join(root, "sandboxes/s/child")));
  mkdirSync(join(root, "snapshots/theirs"));
  const manifest = readFileSync(join(root, "snapshots/mine/manifest.json"), "utf8");
  const theirs = manifest.replace(/"takenBy":"[^"]*"/, `"takenBy":"${nameOf(victim.pid)}"`);
  writeFileSync(join(root, "snapshots/theirs/manifest.json"), theirs);
  const foreign = async () =>
    (await provider.listSnapshots()).map((stored) => `${stored.snapshotId} ${stored.foreign}`);
  expect(await foreign()).toEqual(["mine false", "theirs true"]);
  const whose = { stateDir: freshPath(), server: "tools", run: "demo" };
  const checkpointer = await openCheckpointer({ provider, append: async () => {}, ...whose });
  expect((await checkpointer.collectGarbage(() => true)).orphans).toEqual(["mine"]); // theirs may be about to be logged
  await kill(victim);
  expect(await foreign()).toEqual(["mine false", "theirs false"]);
  expect((await checkpointer.collectGarbage(() => true)).orphans).toEqual(["mine", "theirs"]);
  await dirProvider({ root }); // ends what the victim had started
});

test("a process runs until it has ended, also while nobody has taken note of its end; a reused id is another process", async () => {
  expect(isRunning(thisProcess)).toBe(true);
  expect(isRunning(thisProcess.replace(/\d$/, (digit) => String((Number(digit) + 1) % 10)))).toBe(false);
  expect(isRunning("999999999-1")).toBe(false);
  const { provider, folder } = await openWith();
  // `sleep` never asks what became of the child that it inherits.
  const script = "sh -c 'echo $$ > corpse; while ! [ -e die ]; do :; done' & exec sleep 1000";
  const abort = new AbortController();
  const request = { command: ["sh", "-c", script], timeoutMs: 100_000, signal: abort.signal } as const;
  const running = provider.exec("s", request).catch(() => undefined);
  const written = () => existsSync(join(folder, "corpse")) && readFileSync(join(folder, "corpse"), "utf8") !== "";
  await until(written);
  const name = nameOf(Number(readFileSync(join(folder, "corpse"), "utf8")));
  expect(isRunning(name)).toBe(true);
  writeFileSync(join(folder, "die"), "");
  await until(() => !isRunning(name));
  expect(existsSync(`/proc/${name.split("-")[0]}`)).toBe(true);
  abort.abort();
  await running;
});
