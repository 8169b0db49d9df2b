import { emptyIndex, foldSnapshots, isSnapshotEvent, type SnapshotEvent } from "@holdpoint/sandbox";
import { expect, test } from "vitest";

const digest = "0".repeat(64);

function taken(snapshot: string): SnapshotEvent {
  return {
    type: "snapshot.taken",
    data: { rollout: "g0-r0", attempt: 0, snapshot, sandbox: "s", checkpointId: "C1", digest },
  };
}
const durable = (snapshot: string): SnapshotEvent => ({ type: "snapshot.durable", data: { snapshot } });
const deleted = (snapshot: string): SnapshotEvent => ({ type: "snapshot.deleted", data: { snapshot } });

test("the index holds what was taken and not deleted, and what of it is durable", () => {
  const index = foldSnapshots(emptyIndex, [taken("a"), taken("b"), durable("b"), taken("c"), deleted("a")]);
  expect([...index].map(([id, record]) => [id, record.durable])).toEqual([
    ["b", true],
    ["c", false],
  ]);
  expect(index.get("c")).toEqual({ ...taken("c").data, durable: false });
});

test("the index of many events at once is that of one after the other, and the one before is unchanged", () => {
  const events = [taken("a"), durable("a"), taken("b"), deleted("a"), durable("a"), deleted("z")];
  let stepwise = emptyIndex;
  for (const event of events) stepwise = foldSnapshots(stepwise, [event]);
  expect(stepwise).toEqual(foldSnapshots(emptyIndex, events));
  expect(emptyIndex.size).toBe(0);
});

test("only events of snapshots concern the index", () => {
  expect([taken("a"), durable("a"), deleted("a"), { type: "sandbox.lent" }].map(isSnapshotEvent)).toEqual([
    true,
    true,
    true,
    false,
  ]);
});
