/** How an episode is cleaned up after, whatever became of it, and what cannot hold that up. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { played, Room, roomOf } from "./environment-room.ts";

/** The sessions that were closed. */
function closes(room: Room): readonly string[] {
  return room.asked.filter((what) => what.includes(" close "));
}

/** Time goes by, for the timers alone. */
async function after(room: Room, ms: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms);
  await room.turns();
}

describe("cleanup", () => {
  test("runs once where run throws before it has seeded anything", async () => {
    const room = roomOf(async () => {
      throw new Error("no");
    });
    await played(room);
    await room.turns();
    expect(closes(room)).toEqual(["agent close r1/0", "resources close r1/0"]);
  });

  test("runs once, and to its end, where the time is used up; that is charged to nobody", async () => {
    const room = new Room();
    room.replies = { ...room.replies, activate: undefined, "resources close": undefined };
    await room.servants();
    await room.enter();
    await room.dispatch("r1", { budgetMs: 5 });
    await room.untilAsked("agent activate r1/0");
    room.nowMs += 10;
    await room.untilAsked("resources close r1/0");
    room.nowMs += 60_000;
    room.replies["resources close"] = {};
    room.answer();
    const ending = await room.ending();
    expect(ending).toMatchObject({ status: "timed_out", reward: null, why: "budget used up", chargedMs: 10 });
    await room.turns();
    expect(closes(room)).toEqual(["agent close r1/0", "resources close r1/0"]);
  });

  test("that a server refuses does not keep the episode from its end", async () => {
    const room = new Room();
    room.replies["resources close"] = { problem: { code: "invalid_checkpoint_state", message: "the disk is full" } };
    expect(await played(room)).toMatchObject({ status: "finished", reward: 1 });
    expect(room.lines.join()).toContain("the disk is full");
  });

  test("that a server does not answer holds up no retire: whoever retires frees what there is", async () => {
    const room = new Room();
    room.replies["resources close"] = undefined;
    await room.servants();
    const environment = await room.enter();
    await room.dispatch("r1");
    await room.untilAsked("resources close r1/0");
    const rollouts = [{ rollout: "r1", attempt: 0 }];
    await room.decide({ type: "rollouts.marked", data: { command: 1, rollouts } });
    expect(await room.obeyed("retire", null, { rollouts })).not.toHaveProperty("problem");
    expect(environment.sessions.all()).toEqual([]);
  });

  test("is held up by no checkpoint for a retire: an episode that parks before its end is given up", async () => {
    const room = new Room();
    room.replies["resources close"] = undefined;
    await room.servants();
    const environment = await room.enter();
    await room.dispatch("r1");
    await room.untilAsked("resources close r1/0");
    const restore = { command: 1, checkpointId: "x1", source: "c0", cut: {} };
    await room.decide({ type: "restore.started", data: { ...restore, assignments: [] } });
    await room.obeyed("restore", "x1", { source: "c0", cut: {}, assignments: [] });
    await room.decide({ type: "restore.installed", data: { ...restore, receipt: [] } });
    room.replies["resources close"] = {};
    room.answer();
    await room.until("session.parked");
    const rollouts = [{ rollout: "r1", attempt: 0 }];
    await room.decide({ type: "rollouts.marked", data: { command: 2, rollouts } });
    expect(await room.obeyed("retire", null, { rollouts })).not.toHaveProperty("problem");
    expect(environment.sessions.all()).toEqual([]);
  });

  describe("by servers that do not answer", () => {
    beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
    afterEach(() => void vi.useRealTimers());

    test("[F7] keeps no episode from its result: each is waited for for a while, and is asked on beside", async () => {
      const room = new Room();
      room.replies = { ...room.replies, activate: undefined, "agent close": undefined };
      room.replies["resources close"] = { problem: { code: "unavailable", message: "not now" } };
      await room.servants();
      await room.enter();
      await room.dispatch("r1", { budgetMs: 5 });
      await room.untilAsked("agent activate r1/0");
      room.nowMs += 10;
      await after(room, 10);
      await room.untilAsked("agent close r1/0");
      await after(room, 5_000);
      await room.untilAsked("resources close r1/0");
      await after(room, 5_000);
      expect(await room.ending()).toMatchObject({ status: "timed_out", why: "budget used up" });
      for (const role of ["agent", "resources"]) {
        expect(room.lines.join("\n")).toContain(`a session of r1 was not closed by ${role}`);
      }
      const before = closes(room).length;
      while (closes(room).length === before) await room.turns(1);
    });
  });
});
