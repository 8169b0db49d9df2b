/** Brokers start, die, come back and leave nothing. */
import { type RunningBroker, startBroker } from "@holdpoint/broker";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, expect, test, vi } from "vitest";
import * as z from "zod";
import { api, connectAs, makeStream, reconnected } from "./client.ts";

const fixture = fileURLToPath(new URL("fixtures/start-and-stay.ts", import.meta.url));
const Started = z.object({ pid: z.number(), monitorUrl: z.string(), storeDir: z.string() });
const generous = { timeout: 60_000, interval: 50 };

const cleanups: (() => void | Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

async function start(options: Parameters<typeof startBroker>[0] = {}): Promise<RunningBroker> {
  const broker = await startBroker(options);
  cleanups.push(() => broker.stop());
  return broker;
}

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "broker-test-"));
  cleanups.push(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

async function startElsewhere(...args: string[]): Promise<{ child: ChildProcess; started: z.infer<typeof Started> }> {
  const child = spawn(process.execPath, [fixture, ...args], { stdio: ["ignore", "pipe", "inherit"] });
  cleanups.push(() => void child.kill("SIGKILL"));
  if (child.stdout === null) throw new Error("no output");
  const [line] = await once(child.stdout, "data");
  return { child, started: Started.parse(JSON.parse(String(line))) };
}

async function answers(monitorUrl: string): Promise<boolean> {
  try {
    return (await fetch(`${monitorUrl}/healthz`)).ok;
  } catch {
    return false;
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

async function monitoring(broker: RunningBroker, page: string): Promise<unknown> {
  return (await fetch(`${broker.monitorUrl}/${page}`)).json();
}

test("[L16] the server writes to the disk before it acknowledges, and its monitoring is on loopback", async () => {
  const broker = await start();
  expect(await monitoring(broker, "varz")).toMatchObject({
    http_host: "127.0.0.1",
    max_payload: 1_048_576,
    jetstream: { config: { sync_always: true, strict: true }, limits: { max_batch_size: 1000 } },
  });
});

test("what was acknowledged before a SIGKILL is there after the restart, on the same ports", async () => {
  const broker = await start();
  await makeStream(broker);
  const agent = await connectAs(broker, "agent");
  for (let count = 1; count <= 100; count++)
    await agent.request("hp.d.log.agent.a.0", String(count), { timeout: 10_000 });
  const before = { url: broker.url, pid: broker.pid };
  await broker.kill();
  expect(isRunning(before.pid)).toBe(false);
  await broker.restart();
  expect(broker.url).toBe(before.url);
  expect(broker.pid).not.toBe(before.pid);
  await reconnected(agent);
  expect(await api(agent, "STREAM.INFO.HP_d", {})).toMatchObject({ state: { messages: 100, last_seq: 100 } });
  await agent.close();
});

test("brokers side by side have their own ports, passwords and streams", async () => {
  const brokers = await Promise.all([start(), start(), start()]);
  const ports = brokers.flatMap(({ ports: { client, websocket, monitor } }) => [client, websocket, monitor]);
  expect(new Set(ports).size).toBe(9);
  expect(new Set(brokers.map((broker) => broker.credentialsOf("agent").password)).size).toBe(3);
  const [first, second] = brokers;
  if (first === undefined || second === undefined) throw new Error("unreachable");
  await makeStream(first);
  const agent = await connectAs(second, "agent");
  expect(await api(agent, "STREAM.INFO.HP_d", {})).toMatchObject({ error: { code: 404 } });
  await agent.close();
});

test("a stopped broker leaves no process and no folder", async () => {
  const broker = await start();
  const { pid, storeDir } = broker;
  expect(existsSync(storeDir)).toBe(true);
  await broker.stop();
  expect(isRunning(pid)).toBe(false);
  expect(existsSync(storeDir)).toBe(false);
  await broker.stop();
});

test("a store that was named stays, and serves the next broker with the passwords given", async () => {
  const storeDir = temporaryFolder();
  const passwords = { agent: "not-a-secret-1234" };
  const first = await start({ storeDir, passwords });
  await makeStream(first);
  await first.stop();
  const second = await start({ storeDir, passwords });
  const agent = await connectAs(second, "agent");
  expect(second.credentialsOf("agent").password).toBe(passwords.agent);
  expect(await api(agent, "STREAM.INFO.HP_d", {})).toMatchObject({ config: { name: "HP_d" } });
  await agent.close();
});

test("a second broker on a store in use is refused", async () => {
  const storeDir = temporaryFolder();
  const first = await start({ storeDir });
  await expect(startBroker({ storeDir })).rejects.toThrow(
    expect.objectContaining({ code: "unavailable", message: expect.stringContaining(first.monitorUrl) }),
  );
});

test("a given port that another process has is refused by name, and nothing is left", async () => {
  const first = await start();
  const attempt = startBroker({ ports: { client: first.ports.client } });
  await expect(attempt).rejects.toThrow(
    expect.objectContaining({ code: "unavailable", message: expect.stringContaining(`client ${first.ports.client}`) }),
  );
});

test("a restart waits for a port that another process has taken meanwhile", async () => {
  const broker = await start();
  await broker.kill();
  const intruder = createServer().listen(broker.ports.client, "127.0.0.1");
  await once(intruder, "listening");
  const restarted = broker.restart();
  await vi.waitFor(() => expect(readFileSync(broker.logFile, "utf8")).toContain("address already in use"), generous);
  intruder.close();
  await restarted;
  expect(await answers(broker.monitorUrl)).toBe(true);
});

test("no password is printed, and one that the configuration could not hold is refused without repeating it", async () => {
  const broker = await start();
  const log = readFileSync(broker.logFile, "utf8");
  expect(log).toContain("Server is ready");
  expect(log).not.toContain(broker.credentialsOf("coordinator").password);
  const refused = startBroker({ passwords: { model: 'quote"quote' } });
  await expect(refused).rejects.toThrow(
    expect.objectContaining({ code: "invalid_request", message: expect.not.stringContaining("quote") }),
  );
});

test("a configuration that the server refuses is refused with the server's own words", async () => {
  await expect(startBroker({ config: "/nowhere/nats.conf" })).rejects.toThrow(/nowhere/);
});

test.each(["SIGKILL", "SIGTERM"] as const)(
  "a broker and its store go with a process that ends by %s",
  async (signal) => {
    const { child, started } = await startElsewhere("stay");
    expect(await answers(started.monitorUrl)).toBe(true);
    child.kill(signal);
    await vi.waitFor(() => expect(existsSync(started.storeDir)).toBe(false), generous);
    expect(await answers(started.monitorUrl)).toBe(false);
  },
);

test("a process that forgets to stop its broker ends, and the broker with it", async () => {
  const { child, started } = await startElsewhere("leave");
  if (child.exitCode === null) await once(child, "exit");
  expect(child.exitCode).toBe(0);
  expect(existsSync(started.storeDir)).toBe(false);
  expect(await answers(started.monitorUrl)).toBe(false);
});

test("a detached broker outlives its process, and needs a store of its own", async () => {
  await expect(startBroker({ detached: true })).rejects.toThrow(expect.objectContaining({ code: "invalid_request" }));
  const { child, started } = await startElsewhere("detached", temporaryFolder());
  cleanups.push(() => void process.kill(started.pid, "SIGKILL"));
  if (child.exitCode === null) await once(child, "exit");
  expect(await answers(started.monitorUrl)).toBe(true);
});
