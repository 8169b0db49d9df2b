import { openBlobs } from "@holdpoint/jetstream";
import { blobBucket, blobSubject } from "@holdpoint/schemas";
import { FaultyProxy, startTestBroker } from "@holdpoint/testing";
import { createHash } from "node:crypto";
import { afterAll, expect, test, vi } from "vitest";
import { internals } from "../src/connection.ts";

const broker = await startTestBroker();
const proxy = await FaultyProxy.before(broker.server.url);
const coordinator = await broker.connectAs("coordinator");
const { manager } = internals(coordinator);
const agent = await broker.connectAs("agent", proxy.url);
afterAll(async () => {
  await broker.stop();
  await proxy.close();
});

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

async function stored(run: string): Promise<number> {
  return (await manager.streams.info(blobBucket(run))).state.messages;
}

const texts = {
  empty: "",
  small: "ünïcödé €",
  exact: "x".repeat(256 * 1024),
  large: "0123456789".repeat(300_000),
  wide: `a${"💾".repeat(400_000)}`, // a pair of units across every border between parts
};

test.each(Object.entries(texts))("a text is found by its digest as it was put: %s", async (_, text) => {
  const blobs = openBlobs(agent, await broker.newRun(), sha256);
  const digest = await blobs.put(text);
  expect(digest).toBe(sha256(text));
  expect(await blobs.has(digest)).toBe(true);
  expect((await blobs.get(digest)) === text).toBe(true);
});

test("the same text again is stored once, by whoever puts it", async () => {
  const run = await broker.newRun();
  const [one, other] = [openBlobs(agent, run, sha256), openBlobs(coordinator, run, sha256)];
  await Promise.all([one.put(texts.small), other.put(texts.small), one.put(texts.small)]);
  expect(await stored(run)).toBe(1);
  await one.put(texts.large);
  const count = await stored(run);
  await other.put(texts.large);
  expect(await stored(run)).toBe(count);
});

test("a text that nobody has put is missing, and says so", async () => {
  const blobs = openBlobs(agent, await broker.newRun(), sha256);
  const digest = sha256("nobody's");
  expect(await blobs.has(digest)).toBe(false);
  await expect(blobs.get(digest)).rejects.toMatchObject({
    code: "invalid_checkpoint_state",
    message: expect.stringContaining("is missing"),
  });
});

test("a text that is not what its digest says, or lacks a part, is damaged, and says so", async () => {
  const run = await broker.newRun();
  const blobs = openBlobs(agent, run, sha256);
  const damaged = { code: "invalid_checkpoint_state", message: expect.stringContaining("is damaged") };
  const digest = await blobs.put(texts.large);
  await manager.streams.purge(blobBucket(run), { filter: blobSubject(run, digest, 2) });
  await expect(blobs.get(digest)).rejects.toMatchObject(damaged);
  const wrong = sha256("another");
  coordinator.publish(blobSubject(run, wrong, 0), "not the other");
  await vi.waitFor(async () => expect(await blobs.has(wrong)).toBe(true), { timeout: 30_000 });
  await expect(blobs.get(wrong)).rejects.toMatchObject(damaged);
});

test("a text whose acknowledgement was lost is stored once, and its putting ends", async () => {
  const run = await broker.newRun();
  const blobs = openBlobs(agent, run, sha256);
  proxy.loseAnswers();
  const putting = blobs.put(texts.small);
  await vi.waitFor(async () => expect(await stored(run)).toBe(1), { timeout: 30_000, interval: 20 });
  proxy.heal();
  expect(await putting).toBe(sha256(texts.small));
  expect(await stored(run)).toBe(1);
});

test("a full bucket stops a text where it is, and says so", async () => {
  const run = await broker.newRun({ maxBlobBytes: 65_536 });
  const onTrouble = vi.fn();
  const connection = await broker.connectAs("agent");
  const putting = openBlobs(connection, run, sha256, { onTrouble }).put(texts.exact);
  await vi.waitFor(() => expect(onTrouble).toHaveBeenCalledWith(expect.stringContaining("maximum bytes")), {
    timeout: 30_000,
  });
  await connection.close();
  await expect(putting).rejects.toMatchObject({ code: "unavailable" });
});
