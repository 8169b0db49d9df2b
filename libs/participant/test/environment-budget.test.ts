/** Whoever waits for a checkpoint is not charged for it, whatever becomes of the checkpoint. */
import type { ControlEvent } from "@holdpoint/schemas";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Room } from "./environment-room.ts";

const everyone = ["environment", "model", "agent", "resources"] as const;
const verdict = new Room().replies["activate"];

function asked(operation: "prepare" | "capture" | "proceed" | "resume", checkpointId = "c1"): ControlEvent {
  const data = { command: 1, operation, roles: [...everyone], checkpointId, remainingMs: 60_000 };
  return { type: "participants.asked", data: operation === "capture" ? { ...data, scope: [r1] } : data };
}

const r1 = { rollout: "r1", attempt: 0 };
/** The end of the id, and the ask to serve again. */
function resumed(checkpointId = "c1"): readonly ControlEvent[] {
  const data = { command: 1, checkpointId, reason: "command" as const };
  return [{ type: "checkpoint.resumed", data }, asked("resume", checkpointId)];
}

const captured: ControlEvent = {
  type: "checkpoint.captured",
  data: { command: 1, checkpointId: "c1", stream: "HP_room", scope: [r1], holdings: [] },
};

/** r1 runs, with a budget of 25 s, and has worked for 3 s when a checkpoint closes admission. */
async function closed(): Promise<Room> {
  const room = new Room();
  room.replies = { ...room.replies, activate: undefined };
  await room.servants();
  await room.enter();
  await room.dispatch("r1", { budgetMs: 25_000 });
  while (!room.asked.includes("agent activate r1/0")) await room.turns(1);
  room.nowMs += 3_000;
  await room.decide(asked("prepare"));
  return room;
}

/** It comes to a boundary at once. */
async function prepared(): Promise<Room> {
  const room = await closed();
  await room.agentSays("session.parked", "r1");
  await room.turns();
  return room;
}

async function opened(room: Room, ...events: readonly ControlEvent[]): Promise<void> {
  await room.agentSays("session.unparked", "r1");
  await room.decide(...events);
  await room.turns();
}

/** One more second of work, then the agent is done. @returns how it ended */
async function end(room: Room) {
  room.nowMs += 1_000;
  room.replies = { ...room.replies, activate: verdict };
  room.answer();
  return (await room.until("episode.ended")).at(-1)?.data;
}

test("[S3] a prepare that is aborted costs nothing, however long it stood", async () => {
  const room = await prepared();
  room.nowMs += 30_000;
  await opened(room, ...resumed());
  expect(await end(room)).toMatchObject({ status: "finished", chargedMs: 4_000 });
});

test("[S3] nor does the time between the cut and the resume", async () => {
  const room = await prepared();
  room.nowMs += 10_000;
  await room.decide(asked("capture"));
  await room.turns();
  await room.decide(captured);
  room.nowMs += 20_000;
  await opened(room, ...resumed());
  expect(await end(room)).toMatchObject({ status: "finished", chargedMs: 4_000 });
});

test("[S3] nor do two prepares, one after the other, both aborted", async () => {
  const room = await prepared();
  room.nowMs += 30_000;
  await opened(room, ...resumed());
  room.nowMs += 2_000;
  await room.decide(asked("prepare", "c2"));
  await room.agentSays("session.parked", "r1");
  await room.turns();
  room.nowMs += 40_000;
  await opened(room, ...resumed("c2"));
  expect(await end(room)).toMatchObject({ status: "finished", chargedMs: 6_000 });
});

test("[S3] [L9] a successor that starts inside the hold, after the cut, charges nothing for it either", async () => {
  const room = await prepared();
  await room.decide(asked("capture"));
  await room.turns();
  await room.decide(captured);
  room.nowMs += 20_000;
  await room.enter();
  room.nowMs += 20_000;
  await opened(room, ...resumed());
  expect(await end(room)).toMatchObject({ status: "finished", chargedMs: 4_000 });
});

test("work that goes on while admission is closed is charged", async () => {
  const room = await closed();
  await room.turns();
  room.nowMs += 5_000; // it comes to a boundary only now
  await room.agentSays("session.parked", "r1");
  room.nowMs += 10_000;
  await opened(room, ...resumed());
  expect(await end(room)).toMatchObject({ status: "finished", chargedMs: 9_000 });
});

/** Time goes by, for the timers too. */
async function after(room: Room, ms: number): Promise<void> {
  room.nowMs += ms;
  await vi.advanceTimersByTimeAsync(ms);
  await room.turns();
}

/** How episodes have ended. */
async function ends(room: Room): Promise<readonly object[]> {
  return (await room.said()).flatMap(({ type, data }) => (type === "episode.ended" ? [data] : []));
}

/** What was charged at each cut. */
async function charges(room: Room): Promise<readonly number[]> {
  return (await room.said()).flatMap(({ type, data }) => (type === "episode.charged" ? [data.chargedMs] : []));
}

/** r1 works for 20 s of `budgetMs` inside its activation when it is cut, and is restored a minute later. */
async function restored(budgetMs: number | null): Promise<Room> {
  const room = new Room();
  room.replies = { ...room.replies, activate: undefined };
  await room.servants();
  await room.enter();
  await room.dispatch("r1", { budgetMs });
  await room.untilAsked("agent activate r1/0");
  await after(room, 20_000);
  const { cut } = await room.checkpoint("c1", [r1]);
  await room.restore("x1", { source: "c1", cut });
  await after(room, 60_000);
  await room.dispatch("r1", { attempt: 1, budgetMs });
  await room.untilAsked("agent activate r1/1");
  return room;
}

describe("the time that is left of a budget", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
  afterEach(() => void vi.useRealTimers());

  test("[S3] is, for what was cut inside its activation after 20 s of 30 s, 10 s after the restore", async () => {
    const room = await restored(30_000);
    expect(await charges(room)).toEqual([20_000]);
    await after(room, 9_000);
    expect(await ends(room)).toEqual([]);
    await after(room, 2_000);
    expect(await ends(room)).toMatchObject([{ attempt: 1, status: "timed_out", reward: null, chargedMs: 31_000 }]);
  });

  test("[S3] is less by what each checkpoint finds: charges add up over attempts", async () => {
    const room = await restored(30_000);
    await after(room, 4_000);
    await room.checkpoint("c2", [{ rollout: "r1", attempt: 1 }]);
    expect(await charges(room)).toEqual([20_000, 24_000]);
    await after(room, 5_000);
    expect(await ends(room)).toEqual([]);
    await after(room, 2_000);
    expect(await ends(room)).toMatchObject([{ status: "timed_out", chargedMs: 31_000 }]);
  });

  test("[S3] has no end where there is no budget, and nothing is charged", async () => {
    const room = await restored(null);
    await after(room, 3_600_000);
    expect([await charges(room), await ends(room)]).toEqual([[0], []]);
  });

  test("[F9] is counted on by the process after a crash, less the time between the two", async () => {
    const room = new Room();
    room.replies = { ...room.replies, activate: undefined };
    await room.servants();
    const first = await room.enter();
    await room.dispatch("r1", { budgetMs: 30_000 });
    await room.untilAsked("agent activate r1/0");
    await after(room, 20_000);
    await room.dispatch("r2");
    await first.stop();
    room.nowMs += 500_000;
    await room.enter();
    await after(room, 9_000);
    expect(await ends(room)).toEqual([]);
    await after(room, 2_000);
    expect(await ends(room)).toMatchObject([{ ...r1, status: "timed_out", chargedMs: 31_000 }]);
  });

  test("[F9] is counted from the resume, where it would have ended while a checkpoint was open", async () => {
    const room = await prepared();
    await after(room, 40_000);
    expect(await ends(room)).toEqual([]);
    await opened(room, ...resumed());
    await after(room, 21_000);
    expect(await ends(room)).toEqual([]);
    await after(room, 2_000);
    expect(await ends(room)).toMatchObject([{ status: "timed_out", chargedMs: 26_000 }]);
  });
});
