import type { EventLog } from "@holdpoint/eventsourcing";
import { openLog } from "@holdpoint/jetstream";
import { controlSubject, filters, logSubject, streamName } from "@holdpoint/schemas";
import { startTestBroker } from "@holdpoint/testing";
import { afterAll, expect, test, vi } from "vitest";
import * as z from "zod";
import { internals } from "../src/connection.ts";

const broker = await startTestBroker();
const coordinator = await broker.connectAs("coordinator");
const { manager } = internals(coordinator);
afterAll(() => broker.stop());

/** A log with `count` messages in turn on ten subjects of agents. */
async function filled(count: number): Promise<{ run: string; log: EventLog; subjects: string[] }> {
  const run = await broker.newRun();
  const log = openLog(coordinator, run);
  const subjects = Array.from({ length: 10 }, (_, worker) =>
    logSubject(run, { role: "agent", instance: "main", worker: String(worker) }),
  );
  const idle = { subject: controlSubject(run), sequence: 0 };
  for (let from = 0; from < count; from += 1000) {
    const drafts = Array.from({ length: Math.min(1000, count - from) }, (_, at) => ({
      subject: subjects[at % subjects.length] ?? "",
      body: JSON.stringify({ at, pad: "x".repeat(200) }),
      messageId: `m${from + at}`,
      expected: idle,
    }));
    await log.appendBatch(drafts);
  }
  return { run, log, subjects };
}

test("[L15] a read over kills of the server delivers every message once, in order, filtered or not", async () => {
  const count = 12_000;
  const { run, log } = await filled(count);
  for (const options of [{ upTo: count }, { upTo: count, subjects: [filters.logs(run)] }]) {
    const found: number[] = [];
    let restarting = Promise.resolve();
    const crash = async () => {
      await broker.server.kill();
      await broker.server.restart();
    };
    await log.read(options, ({ sequence }) => {
      if (found.push(sequence) === 1500) restarting = crash();
    });
    await restarting;
    expect(found).toHaveLength(count);
    expect(found).toEqual(found.map((_, at) => at + 1));
  }
});

const Connections = z.object({ connections: z.array(z.object({ name: z.string(), subscriptions: z.int() })) });

async function subscriptions(name: string): Promise<number> {
  const response = await fetch(`${broker.server.monitorUrl}/connz`);
  const { connections } = Connections.parse(await response.json());
  return connections
    .filter((connection) => connection.name === name)
    .reduce((sum, each) => sum + each.subscriptions, 0);
}

test("reads and tails leave no subscription and no consumer behind", async () => {
  const { run } = await filled(100);
  const connection = await broker.connectAs("agent");
  const log = openLog(connection, run);
  for (let again = 0; again < 30; again++) {
    await log.read({ upTo: 100, subjects: [filters.logs(run)] }, () => undefined);
    await expect(
      log.read({ upTo: 100 }, () => {
        throw new Error("enough");
      }),
    ).rejects.toThrow("enough");
    const tail = await log.tail({ from: 50 }, () => undefined);
    await tail.stop();
  }
  // One is left: where the answers to all requests arrive.
  const bound = { timeout: 20_000, interval: 20 };
  await vi.waitFor(async () => expect(await subscriptions("test agent")).toBe(1), bound);
  // Deletions are not waited for. By itself the server would remove a consumer after 30 s.
  const consumers = async () => (await manager.streams.info(streamName(run))).state.consumer_count;
  await vi.waitFor(async () => expect(await consumers()).toBe(0), bound);
});

test("[L15] a log that has lost messages in its middle is not read, whatever is asked of it", async () => {
  const { run, log, subjects } = await filled(100);
  await manager.streams.purge(streamName(run), { filter: subjects[3] ?? "" });
  const lost = { code: "invalid_checkpoint_state", message: expect.stringContaining("has lost 10 messages") };
  await expect(log.read({ upTo: 100 }, () => undefined)).rejects.toMatchObject(lost);
  await expect(log.read({ upTo: 100, subjects: [subjects[0] ?? ""] }, () => undefined)).rejects.toMatchObject(lost);
});

test("[L15] a read from before the first message that is there is refused", async () => {
  const { run, log } = await filled(100);
  await manager.streams.purge(streamName(run), { seq: 41 });
  await expect(log.read({ upTo: 100 }, () => undefined)).rejects.toMatchObject({
    code: "invalid_checkpoint_state",
    message: expect.stringContaining("begins at 41, after 1"),
  });
  const found: number[] = [];
  await log.read({ from: 41, upTo: 100 }, ({ sequence }) => found.push(sequence));
  expect(found).toHaveLength(60);
});

test("bounds that are no sequences are refused, and an empty range delivers nothing", async () => {
  const { log } = await filled(10);
  for (const [from, upTo] of [
    [0, 5],
    [1.5, 5],
    [1, Number.NaN],
  ] as const) {
    await expect(log.read({ from, upTo }, () => undefined)).rejects.toMatchObject({ code: "invalid_request" });
  }
  await log.read({ from: 6, upTo: 5 }, () => expect.unreachable());
});

test("a run without a stream is `not_found`", async () => {
  const log = openLog(coordinator, "nobodys");
  await expect(log.lastSequence()).rejects.toMatchObject({ code: "not_found" });
  await expect(log.read({ upTo: 1 }, () => undefined)).rejects.toMatchObject({ code: "not_found" });
  await expect(log.tail({ from: 1 }, () => undefined)).rejects.toMatchObject({ code: "not_found" });
});
