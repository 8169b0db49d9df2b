import { openSnapshots } from "@holdpoint/jetstream";
import { snapshotBucket, snapshotSubject } from "@holdpoint/schemas";
import { startTestBroker } from "@holdpoint/testing";
import { afterAll, expect, test } from "vitest";
import { internals } from "../src/connection.ts";

const broker = await startTestBroker();
const coordinator = await broker.connectAs("coordinator");
const agent = await broker.connectAs("agent");
const { manager } = internals(coordinator);
afterAll(() => broker.stop());

function bytes(count: number, seed: number): Uint8Array {
  return Uint8Array.from({ length: count }, (_, at) => (at * 7 + seed) % 251);
}

test.each([0, 1, 512 * 1024, 512 * 1024 + 1, 2_000_000])(
  "[L14] a snapshot of %i bytes is loaded as it was saved",
  async (count) => {
    const snapshots = openSnapshots(agent, await broker.newRun());
    expect(await snapshots.load("agent.main.0")).toBeUndefined();
    await snapshots.save("agent.main.0", bytes(count, 1));
    expect(Buffer.compare((await snapshots.load("agent.main.0")) ?? bytes(3, 0), bytes(count, 1))).toBe(0);
  },
);

test("[L14] of several snapshots of one name the last is loaded, also where it equals one before, and no other is kept", async () => {
  const run = await broker.newRun();
  const snapshots = openSnapshots(agent, run);
  for (const seed of [1, 2, 1]) {
    await snapshots.save("agent.main.0", bytes(600_000, seed));
    expect(Buffer.compare((await snapshots.load("agent.main.0")) ?? bytes(3, 0), bytes(600_000, seed))).toBe(0);
  }
  expect((await manager.streams.info(snapshotBucket(run))).state.messages).toBe(2);
});

test("[L14] parts of two savings that got mixed are no snapshot", async () => {
  const run = await broker.newRun();
  const snapshots = openSnapshots(agent, run);
  await snapshots.save("agent.main.0", bytes(600_000, 1));
  coordinator.publish(snapshotSubject(run, "agent.main.0", 1), "of another");
  await coordinator.request(snapshotSubject(run, "agent.main.0", 2), "and this is behind it");
  expect(await snapshots.load("agent.main.0")).toBeUndefined();
});
