/** An attempt is over where the control plane says so, and nowhere else. */
import { HoldpointError } from "@holdpoint/errors";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Room, roomOf } from "./environment-room.ts";

describe("[C2] who says that an attempt is over, where only control decides it:", () => {
  const refusal = { problem: { code: "stale_attempt", message: "the sandbox is over" } };
  const rollouts = [{ rollout: "r1", attempt: 0 }];
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
  afterEach(() => void vi.useRealTimers());

  /** An episode in which verify is answered like that; returns once it was. */
  async function refused(room: Room): Promise<void> {
    room.replies["verify"] = refusal;
    await room.servants();
    await room.enter();
    await room.dispatch("r1");
    await room.untilAsked("resources verify r1/0");
    await room.turns();
  }

  test("a server whose word control does not bear out has failed the episode, and a prepare waits for it no more", async () => {
    const room = new Room();
    await refused(room);
    expect((await room.said()).map(({ type }) => type)).not.toContain("episode.ended");
    await vi.advanceTimersByTimeAsync(5_000);
    const why = expect.stringMatching(/\(stale_attempt\), and control does not say so: the sandbox is over$/);
    expect(await room.ending()).toMatchObject({ status: "failed", reward: null, verdict: null, why });
    expect(room.asked.slice(-2)).toEqual(["agent close r1/0", "resources close r1/0"]);
    expect(await room.obeyed("prepare", "c1")).toMatchObject({ blockerCount: 0 });
  });

  test("so has a run that throws it of itself", async () => {
    const room = roomOf(async () => {
      throw new HoldpointError("stale_attempt", "I am done");
    });
    await room.servants();
    await room.enter();
    await room.dispatch("r1");
    await room.turns();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await room.ending()).toMatchObject({ status: "failed", why: expect.stringMatching(/I am done$/) });
  });

  test("a server that has seen the mark earlier is right: the episode has no end, and whoever retired it frees what it held", async () => {
    const room = new Room();
    await refused(room);
    await room.decide({ type: "rollouts.marked", data: { command: 1, rollouts } });
    await room.turns();
    await vi.advanceTimersByTimeAsync(20_000);
    await room.turns();
    expect(await room.obeyed("retire", null, { rollouts })).not.toHaveProperty("problem");
    expect((await room.everything()).map(({ type }) => type)).not.toContain("episode.ended");
    expect(room.asked.filter((what) => what.includes("resources close"))).toEqual([]);
  });

  test("a process whose successor has taken over closes no session with which that one goes on", async () => {
    const room = new Room();
    room.replies["verify"] = undefined;
    await room.servants();
    await room.enter();
    await room.dispatch("r1");
    await room.untilAsked("resources verify r1/0");
    await room.enter();
    room.asked.length = 0;
    room.replies["verify"] = new Room().replies["verify"];
    room.answer();
    expect(await room.ending()).toMatchObject({ status: "finished" });
    await vi.advanceTimersByTimeAsync(5_000);
    await room.turns();
    expect(room.asked.filter((what) => what.includes(" close "))).toEqual(["resources close r1/0"]);
  });
});
