import { ensureStream, openLog } from "@holdpoint/jetstream";
import { controlSubject, streamName } from "@holdpoint/schemas";
import { FaultyProxy, startTestBroker } from "@holdpoint/testing";
import { open as openFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, expect, test, vi } from "vitest";

const broker = await startTestBroker();
const coordinator = await broker.connectAs("coordinator");
const proxy = await FaultyProxy.before(broker.server.url);
afterAll(async () => {
  await broker.stop();
  await proxy.close();
});

const patient = { timeout: 60_000, interval: 20 };

/** Overwrites some bytes near the end of the file that holds the messages of `run`. */
async function damage(run: string): Promise<void> {
  const folder = join(broker.server.storeDir, "jetstream", "HOLDPOINT", "streams", streamName(run), "msgs");
  const file = await openFile(join(folder, "1.blk"), "r+");
  const { size } = await file.stat();
  await file.write(Buffer.alloc(64, "A"), 0, 64, size - 500);
  await file.close();
}

async function open(connection = coordinator) {
  const run = await broker.newRun();
  const subject = controlSubject(run);
  const log = openLog(connection, run);
  const writer = openLog(coordinator, run);
  /** Appends messages until the log ends at `upTo`. */
  const fill = async (upTo: number, name = "m") => {
    for (let sequence = await writer.lastSequence(); sequence < upTo; sequence++) {
      await writer.append({ subject, body: "{}", messageId: `${name}${sequence}`, expected: { subject, sequence } });
    }
  };
  return { run, log, fill };
}

test("a tail goes on at once when its connection broke, without a gap and without a repeat", async () => {
  const { log, fill } = await open(await broker.connectAs("agent", proxy.url));
  const seen: number[] = [];
  const tail = await log.tail({ from: 1 }, ({ sequence }) => seen.push(sequence));
  for (let broken = 1; broken <= 5; broken++) {
    await fill(broken * 10);
    proxy.heal();
  }
  await vi.waitFor(() => expect(tail.last).toBe(50), patient);
  expect(seen).toEqual(seen.map((_, at) => at + 1));
  await tail.stop();
});

test("a tail whose deliveries stay away asks again, without a gap", async () => {
  const { log, fill } = await open(await broker.connectAs("agent", proxy.url));
  const seen: number[] = [];
  const tail = await log.tail({ from: 1 }, ({ sequence }) => seen.push(sequence));
  await fill(1);
  await vi.waitFor(() => expect(seen).toEqual([1]), patient);
  // All that belongs to the second message is lost, and the connection stays: no heartbeat comes either.
  const before = proxy.answersLost;
  proxy.loseAnswers();
  await fill(2);
  await vi.waitFor(() => expect(proxy.answersLost).toBeGreaterThan(before), patient);
  proxy.findAnswers();
  await fill(3);
  await vi.waitFor(() => expect(seen).toEqual([1, 2, 3]), patient);
  await tail.stop();
});

test("what a tail's reader throws ends the tail, and is told", async () => {
  const { log, fill } = await open();
  await fill(2);
  const wrong = new Error("wrong");
  const tail = await log.tail({ from: 1 }, () => {
    throw wrong;
  });
  await expect(tail.ended).rejects.toBe(wrong);
  expect(tail.last).toBe(0);
});

test("a tail ends with `unavailable` when its connection is closed", async () => {
  const connection = await broker.connectAs("agent");
  const { log } = await open(connection);
  const tail = await log.tail({ from: 1 }, () => undefined);
  await connection.close();
  await expect(tail.ended).rejects.toMatchObject({ code: "unavailable" });
});

test("[L15] a tail notices that the server lost the end of its file, although others have written there since", async () => {
  const { run, log, fill } = await open(await broker.connectAs("agent", proxy.url));
  await fill(20);
  const seen: number[] = [];
  const tail = await log.tail({ from: 1 }, ({ sequence }) => seen.push(sequence));
  await vi.waitFor(() => expect(seen).toHaveLength(20), patient);
  proxy.goDown();
  await broker.server.kill();
  await damage(run);
  await broker.server.restart();
  expect(await openLog(coordinator, run).lastSequence()).toBeLessThan(20);
  await fill(30, "other");
  proxy.heal();
  await expect(tail.ended).rejects.toMatchObject({ code: "invalid_checkpoint_state" });
  expect(seen).toHaveLength(20);
});

test("[L15] a tail and a read notice that the stream was made anew under them", async () => {
  const { run, log, fill } = await open();
  await fill(20);
  const seen: number[] = [];
  const tail = await log.tail({ from: 1 }, ({ sequence }) => seen.push(sequence));
  await vi.waitFor(() => expect(seen).toHaveLength(20), patient);
  await broker.server.kill();
  await rm(join(broker.server.storeDir, "jetstream"), { recursive: true });
  await broker.server.restart();
  await ensureStream(await broker.connectAs("coordinator"), run);
  await fill(10);
  await expect(tail.ended).rejects.toMatchObject({ code: "invalid_checkpoint_state" });
  expect(seen).toHaveLength(20);
  await expect(log.read({ upTo: 20 }, () => undefined)).rejects.toMatchObject({ code: "invalid_checkpoint_state" });
});
