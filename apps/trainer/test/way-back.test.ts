import { expect, test } from "vitest";
import { type KnownRollout, type Situation, wayBack } from "../src/next-step.ts";
import { type EpisodeResult, firstState, type TrainerState, withGroup } from "../src/state.ts";
import { worldGroups as groups, worldPlan } from "./world.ts";

const attempts = { attemptOf: () => 0, isContinued: () => false };
const fresh = firstState(worldPlan);

function result(rollout: string, policyVersion = 0): EpisodeResult {
  return { rollout, attempt: 0, status: "finished", reward: 1, policyVersion, sequence: 20 };
}

/** Each rollout was opened once; those of `ended` have a result. */
function known(opened: readonly string[], ended: readonly string[] = []): ReadonlyMap<string, KnownRollout> {
  return new Map(
    opened.map((rollout) => [rollout, { highest: 0, results: ended.includes(rollout) ? [result(rollout)] : [] }]),
  );
}

function situation(state: TrainerState): Situation {
  return { groups, state, attempts };
}

const scope = [{ rollout: "g0-r0", attempt: 0 }];

test("what the checkpoint holds and still ran is given up, then continued", () => {
  expect(wayBack(situation(fresh), scope, known(["g0-r0"]))).toEqual({
    retired: [{ rollout: "g0-r0", attempt: 0 }],
    restored: ["g0-r0"],
  });
});

test("what was dispatched after the checkpoint is given up, and not continued", () => {
  expect(wayBack(situation(fresh), scope, known(["g0-r1"]))).toEqual({
    retired: [{ rollout: "g0-r1", attempt: 0 }],
    restored: ["g0-r0"],
  });
});

test("an episode that ended after the checkpoint is not run again", () => {
  const nothing = { retired: [], restored: [] };
  expect(wayBack(situation(fresh), scope, known(["g0-r0", "g0-r1"], ["g0-r0", "g0-r1"]))).toEqual(nothing);
});

test("[L12] an episode that was sampled with weights that are undone is run again", () => {
  const rollout = "g2-r0";
  const ended = new Map([[rollout, { highest: 0, results: [result(rollout, 1)] }]]);
  expect(wayBack(situation(fresh), [], ended)).toEqual({ retired: [{ rollout, attempt: 0 }], restored: [] });
});

test("a result that was saved with the checkpoint, and a trained rollout, are left alone", () => {
  const saved = { ...fresh, pending: [result("g0-r0")] };
  expect(wayBack(situation(saved), [], known(["g0-r0"]))).toEqual({ retired: [], restored: [] });
  const results = [result("g0-r0")];
  const trained = withGroup(fresh, { group: "g0", results, weights: fresh.weights, policy: "0".repeat(64) });
  expect(wayBack(situation(trained), scope, known(["g0-r0"]))).toEqual({ retired: [], restored: [] });
});

test("[L7] what was retired before is not retired again, and the highest attempt is the one that is named", () => {
  const second = { ...situation(fresh), attempts: { ...attempts, attemptOf: () => 2 } };
  expect(wayBack(second, [], known(["g0-r0"])).retired).toEqual([]);
  const opened = new Map([["g0-r0", { highest: 3, results: [] }]]);
  expect(wayBack(second, [], opened).retired).toEqual([{ rollout: "g0-r0", attempt: 3 }]);
});
