import { expect, test } from "vitest";
import { Room } from "./room.ts";

const episode = { rollout: "r1", attempt: 0 };
const seed = { digest: "0".repeat(64), bytes: 0, text: "" };
/** More messages than a start folds before it saves a snapshot. */
const manyTurns = 1_100;

/** A room whose agent has received so many responses that the start after it saves a snapshot. */
async function longHistory(): Promise<Room> {
  const room = new Room();
  const agent = await room.enter();
  await agent.record({ type: "session.seeded", data: { ...episode, sessionId: "s1", seed } });
  for (let turn = 0; turn < manyTurns; turn++) {
    await agent.record({ type: "call.received", data: { ...episode, turn, response: seed } });
  }
  await room.enter();
  return room;
}

test("[L14] a start from a snapshot comes to the state that a start without one comes to", async () => {
  const room = await longHistory();
  expect([...room.snapshots.saved.keys()]).toEqual(["agent.main.0"]);
  const second = await room.enter();
  await second.record({ type: "call.received", data: { ...episode, turn: manyTurns, response: seed } });
  const fromSnapshot = await room.enter();
  room.snapshots.saved.clear();
  const fromStart = await room.enter();
  expect(fromSnapshot.sessions.all()).toEqual(fromStart.sessions.all());
  expect(fromSnapshot.sessions.get(episode)?.state.calls).toBe(manyTurns + 1);
  expect(fromSnapshot.gate).toEqual(fromStart.gate);
});

test.each([
  ["damaged", (bytes: Uint8Array) => bytes.map((byte, at) => (at === 40 ? byte ^ 255 : byte))],
  ["cut off", (bytes: Uint8Array) => bytes.subarray(0, bytes.length / 2)],
  ["none of ours", () => new TextEncoder().encode("{}")],
])("[L14] a snapshot that is %s counts as none", async (_, spoil) => {
  const room = await longHistory();
  for (const [name, bytes] of room.snapshots.saved) room.snapshots.saved.set(name, spoil(bytes));
  const successor = await room.enter();
  expect(successor.sessions.get(episode)?.state.calls).toBe(manyTurns);
});

test("[L14] a snapshot of a future that the log does not have counts as none", async () => {
  const old = await longHistory();
  const young = new Room();
  for (const [name, bytes] of old.snapshots.saved) young.snapshots.saved.set(name, bytes);
  const agent = await young.enter();
  expect(agent.sessions.all()).toEqual([]);
});
