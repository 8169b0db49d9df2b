import type { Draft, StoredMessage } from "@holdpoint/eventsourcing";
import { consumeResults, type ConsumeOptions, openLog, type ResultInHand } from "@holdpoint/jetstream";
import { logSubject, resultSubject, streamName } from "@holdpoint/schemas";
import { startTestBroker } from "@holdpoint/testing";
import { afterAll, expect, test, vi } from "vitest";
import { internals } from "../src/connection.ts";

const broker = await startTestBroker();
const environment = await broker.connectAs("environment");
const trainer = await broker.connectAs("trainer");
const { manager } = internals(trainer);
afterAll(() => broker.stop());

const patient = { timeout: 60_000, interval: 20 };
const writer = { role: "environment", instance: "main", worker: "0" } as const;

/** A run with results at sequences 2, 4, 6 … 20, and something else before each. */
async function open() {
  const run = await broker.newRun();
  const log = openLog(environment, run);
  const [other, result] = [logSubject(run, writer), resultSubject(run, writer)];
  const append = async (subject: string) => {
    const last = (await log.lastOn(subject))?.sequence ?? 0;
    const draft: Draft = {
      subject,
      body: "{}",
      messageId: `${subject} ${last}`,
      expected: { subject, sequence: last },
    };
    await log.append(draft);
  };
  const finish = async () => {
    await append(other);
    await append(result);
  };
  for (let at = 0; at < 10; at++) await finish();
  return { run, finish };
}

/** A consumer that keeps what it is given in `hands`, and settles nothing. */
async function consume(run: string, options: Partial<ConsumeOptions> & { readonly fromSequence: number }) {
  const hands: ResultInHand[] = [];
  const dead: string[] = [];
  const consumer = await consumeResults(trainer, run, {
    durable: "TRAINER",
    deliver: (result) => void hands.push(result),
    onDeadLetter: ({ sequence }: StoredMessage, deliveries) => void dead.push(`${sequence} after ${deliveries}`),
    ...options,
  });
  /** The sequences in hand, once there are `count`. */
  const inHand = async (count: number) => {
    await vi.waitFor(() => expect(hands.length).toBeGreaterThanOrEqual(count), patient);
    return hands.map(({ message }) => message.sequence);
  };
  return { hands, dead, consumer, inHand };
}

async function pending(run: string): Promise<number> {
  return (await manager.consumers.info(streamName(run), "TRAINER")).num_ack_pending;
}

test("results alone come, in order, those that are there and those that follow", async () => {
  const { run, finish } = await open();
  const { inHand, consumer } = await consume(run, { fromSequence: 1 });
  expect(await inHand(10)).toEqual([2, 4, 6, 8, 10, 12, 14, 16, 18, 20]);
  await finish();
  expect(await inHand(11)).toEqual([2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22]);
  await consumer.stop();
  await consumer.ended;
});

test("[L12] a trainer that starts again gets what follows its saved cursor, whatever was acknowledged", async () => {
  const { run } = await open();
  const first = await consume(run, { fromSequence: 1 });
  expect(await first.inHand(10)).toEqual([2, 4, 6, 8, 10, 12, 14, 16, 18, 20]);
  for (const result of first.hands.slice(0, 8)) result.ack();
  await vi.waitFor(async () => expect(await pending(run)).toBe(2), patient);
  await first.consumer.stop();

  const back = await consume(run, { fromSequence: 9 });
  expect(await back.inHand(6)).toEqual([10, 12, 14, 16, 18, 20]);
  expect(back.hands.map(({ deliveries }) => deliveries)).toEqual([1, 1, 1, 1, 1, 1]);
  await back.consumer.stop();

  const ahead = await consume(run, { fromSequence: 19 });
  expect(await ahead.inHand(1)).toEqual([20]);
  await ahead.consumer.stop();
});

test("[L12] a result in hand is not handed out again, however late it is settled", async () => {
  const { run, finish } = await open();
  const { hands, inHand, consumer } = await consume(run, { fromSequence: 19, ackWaitMs: 200 });
  expect(await inHand(1)).toEqual([20]);
  const redelivered = async () => (await manager.consumers.info(streamName(run), "TRAINER")).num_redelivered;
  await vi.waitFor(async () => expect(await redelivered()).toBeGreaterThan(0), patient);
  await finish();
  expect(await inHand(2)).toEqual([20, 22]);
  for (const { ack } of hands) ack();
  await vi.waitFor(async () => expect(await pending(run)).toBe(0), patient);
  await consumer.stop();
});

test("a result is not thought lost for as long as it says that it is worked on", async () => {
  const { run } = await open();
  const { hands, inHand, consumer } = await consume(run, { fromSequence: 17, ackWaitMs: 2000 });
  expect(await inHand(2)).toEqual([18, 20]);
  const redelivered = vi.waitFor(async () => {
    hands[1]?.working();
    const info = await manager.consumers.info(streamName(run), "TRAINER");
    expect(info.num_redelivered).toBeGreaterThan(0);
    return info.num_redelivered;
  }, patient);
  expect(await redelivered).toBe(1);
  await consumer.stop();
});

test("a result that comes back too often is a dead letter, told once, and comes no more", async () => {
  const { run } = await open();
  const { dead, consumer } = await consume(run, {
    fromSequence: 3,
    maxDeliver: 3,
    deliver: (result) => (result.message.sequence === 6 ? result.retry(1) : result.ack()),
  });
  await vi.waitFor(() => expect(dead).toEqual(["6 after 4"]), patient);
  await vi.waitFor(async () => expect(await pending(run)).toBe(0), patient);
  expect(dead).toHaveLength(1);
  await consumer.stop();
});

test("no more results are in hand than asked for, and the rest follows as they are settled", async () => {
  const { run } = await open();
  const { hands, inHand, consumer } = await consume(run, { fromSequence: 1, maxInHand: 3 });
  expect(await inHand(3)).toEqual([2, 4, 6]);
  for (const { ack } of hands.slice(0, 2)) ack();
  expect(await inHand(5)).toEqual([2, 4, 6, 8, 10]);
  hands[2]?.terminate("of no use");
  expect(await inHand(6)).toEqual([2, 4, 6, 8, 10, 12]);
  await consumer.stop();
});

test("a consumer goes on over a kill of the server, and when it was deleted", async () => {
  const { run, finish } = await open();
  const seen = new Set<number>();
  const deliver = (result: ResultInHand) => {
    seen.add(result.message.sequence);
    result.ack();
  };
  const { consumer } = await consume(run, { fromSequence: 1, deliver });
  await vi.waitFor(() => expect(seen.size).toBe(10), patient);
  await broker.server.kill();
  await broker.server.restart();
  await finish();
  await vi.waitFor(() => expect(seen.has(22)).toBe(true), patient);
  const coordinator = internals(await broker.connectAs("coordinator")).manager;
  await coordinator.consumers.delete(streamName(run), "TRAINER");
  await finish();
  await vi.waitFor(() => expect(seen.has(24)).toBe(true), patient);
  await consumer.stop();
});

test("[L15] a cursor behind the end of the stream is about another stream, and refused", async () => {
  const { run } = await open();
  const consuming = consume(run, { fromSequence: 22 });
  await expect(consuming).rejects.toMatchObject({ code: "invalid_checkpoint_state" });
  const { consumer } = await consume(run, { fromSequence: 21 });
  await consumer.stop();
});
