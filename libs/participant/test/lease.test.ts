/** A hold that nobody ends: the process ends it by its own clock. */
import { MemoryLog } from "@holdpoint/eventsourcing";
import type { ControlEvent } from "@holdpoint/schemas";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type Agent, episodeOf, Room, seeded, turns } from "./room.ts";

const r1 = episodeOf("r1");
const leaseMs = 60_000;
/** How much later than the coordinator it acts. */
const patienceMs = 5_000;

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

function moved(checkpointId = "c1", ms = leaseMs): ControlEvent {
  return { type: "lease.moved", data: { command: 1, checkpointId, leaseMs: ms } };
}

/** Lets time pass, for the clock as for the timers. */
async function pass(room: Room, ms: number): Promise<void> {
  room.laterMs += ms;
  await vi.advanceTimersByTimeAsync(ms);
  await turns();
}

async function prepared(): Promise<{ room: Room; agent: Agent }> {
  const room: Room = new Room(new MemoryLog("HP_room", () => 1_000 + room.laterMs));
  const agent = await room.enter();
  await agent.record(seeded(r1));
  await room.decide(moved());
  await room.obeyed("prepare");
  return { room, agent };
}

test("[C12] it says that the lease ran out, a little later than the coordinator would have, and serves again", async () => {
  const { room, agent } = await prepared();
  const parked = agent.boundary(r1);
  await pass(room, leaseMs + patienceMs - 1_000);
  expect([agent.gate.closed?.checkpointId, await room.types()]).toEqual([
    "c1",
    expect.not.arrayContaining(["lease.expired"]),
  ]);
  await pass(room, 2_000);
  await parked;
  expect(agent.gate.closed).toBeUndefined();
  expect((await room.types()).slice(-2)).toEqual(["lease.expired", "session.unparked"]);
});

test("[A1] what it said is a fence: a late prepare of the id closes nothing, nor in the process that comes after it", async () => {
  const { room, agent } = await prepared();
  await pass(room, leaseMs + patienceMs + 1_000);
  await room.ask("prepare");
  await turns();
  expect(agent.gate.closed).toBeUndefined();
  await agent.stop();
  const successor = await room.enter();
  expect(successor.gate.closed).toBeUndefined();
  expect(successor.gate.stale.has("c1")).toBe(true);
});

test("a lease that is moved holds for as long as it says", async () => {
  const { room, agent } = await prepared();
  await pass(room, leaseMs);
  await room.decide(moved());
  await turns();
  await pass(room, leaseMs);
  expect(agent.gate.closed?.checkpointId).toBe("c1");
  await pass(room, patienceMs + 1_000);
  expect(agent.gate.closed).toBeUndefined();
});

test("[L4] captured and without a cut, its word about the lease goes out all the same", async () => {
  const { room, agent } = await prepared();
  await room.obeyed("capture", { scope: [r1] });
  expect(agent.gate.fixed).toBeDefined();
  await pass(room, leaseMs + patienceMs + 1_000);
  expect([agent.gate.fixed, agent.gate.closed]).toEqual([undefined, undefined]);
  expect((await room.types()).at(-1)).toBe("lease.expired");
});

test("closed for an id that was resumed, and not asked to serve again yet, it goes by the lease of what was opened since", async () => {
  const { room, agent } = await prepared();
  await room.decide({ type: "checkpoint.resumed", data: { command: 1, checkpointId: "c1", reason: "command" } });
  await room.decide(moved("c2", 2 * leaseMs));
  await turns();
  await pass(room, leaseMs + patienceMs + 1_000);
  expect(agent.gate.closed?.checkpointId).toBe("c1");
  await pass(room, leaseMs);
  expect(agent.gate.closed).toBeUndefined();
});

test("closed for another id under the same lease, it is that one which ends", async () => {
  const { room, agent } = await prepared();
  await room.decide({ type: "checkpoint.resumed", data: { command: 1, checkpointId: "c1", reason: "command" } });
  await room.decide(moved("c2"));
  await turns();
  await room.obeyed("prepare", { checkpointId: "c2" });
  expect(agent.gate.closed?.checkpointId).toBe("c2");
  await pass(room, leaseMs + patienceMs + 1_000);
  expect(agent.gate.closed).toBeUndefined();
});

test("a process that comes back after the lease has run out serves at once", async () => {
  const { room, agent } = await prepared();
  await agent.stop();
  room.laterMs += leaseMs + patienceMs + 1_000;
  const successor = await room.enter();
  await pass(room, 1);
  expect(successor.gate.closed).toBeUndefined();
});

test("resumed in time, or of another id, it is no concern", async () => {
  const { room, agent } = await prepared();
  await room.resume();
  await room.decide(moved("c2", 1));
  await turns();
  await pass(room, leaseMs * 2);
  expect(agent.gate.closed).toBeUndefined();
  expect(await room.types()).not.toContain("lease.expired");
});
