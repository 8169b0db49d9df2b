/** Episodes that are over are never opened again. */
import { describe, expect, test } from "vitest";
import { holding, Told } from "./sessions.ts";

const r0 = { rollout: "r", attempt: 0 };
const r1 = { rollout: "r", attempt: 1 };
const other = { rollout: "other", attempt: 0 };

describe("what has ended", () => {
  test("is remembered by its rollout's highest attempt, also in a saved fold, until it is forgotten", () => {
    const told = holding(r1, other);
    expect(told.fold.hasEnded(r1)).toBe(false);
    told.say("episode.ended", r1);
    const saved = new Told();
    saved.fold.load(told.fold.save());
    for (const { fold } of [told, saved]) {
      expect([r0, r1, { rollout: "r", attempt: 2 }, other].map((episode) => fold.hasEnded(episode))).toEqual([
        true,
        true,
        false,
        false,
      ]);
    }
    told.decide({ type: "rollouts.forgotten", data: { command: 1, rollouts: ["r"] } });
    expect(told.fold.hasEnded(r0)).toBe(false);
  });

  test("does not hide that a later attempt ended before an earlier one", () => {
    const told = holding(r0, r1);
    told.say("session.closed", r1);
    told.say("session.retired", r0);
    expect(told.fold.hasEnded(r1)).toBe(true);
  });
});
