import * as fc from "fast-check";
import { expect, test } from "vitest";
import { ControlHistory } from "../src/control-history.ts";
import { checkpointDue } from "../src/next-step.ts";
import { firstState } from "../src/state.ts";
import { World, worldGroups, worldPlan } from "./world.ts";

const planned = worldGroups.map(({ groupId }) => groupId);

/** The weights of a run to which nothing happened. */
function undisturbed(failing: ReadonlySet<string> = new Set()): readonly number[] {
  const world = new World({ failing });
  world.finish();
  return world.state.weights;
}

const accident = fc.oneof(
  { weight: 16, arbitrary: fc.record({ kind: fc.constant("round" as const), choice: fc.nat(20) }) },
  { weight: 6, arbitrary: fc.constant({ kind: "dispatch" as const, choice: 0 }) },
  { weight: 8, arbitrary: fc.record({ kind: fc.constant("end" as const), choice: fc.nat(20) }) },
  { weight: 8, arbitrary: fc.constant({ kind: "consume" as const, choice: 0 }) },
  { weight: 4, arbitrary: fc.constant({ kind: "save" as const, choice: 0 }) },
  { weight: 6, arbitrary: fc.constant({ kind: "train" as const, choice: 0 }) },
  { weight: 2, arbitrary: fc.constant({ kind: "crash" as const, choice: 0 }) },
  { weight: 2, arbitrary: fc.constant({ kind: "checkpoint" as const, choice: 0 }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("restore" as const), choice: fc.nat(1) }) },
);

const rollouts = worldGroups.flatMap((group) => group.rollouts.map(({ rolloutId }) => rolloutId));
const someRollouts = fc.subarray(rollouts, { maxLength: 5 });

test("[F2] whatever ends first, crashes or is restored, each group is trained once, in order, to the same weights", () => {
  const wanted = undisturbed();
  fc.assert(
    fc.property(fc.array(accident, { maxLength: 200 }), (accidents) => {
      const world = new World();
      for (const { kind, choice } of accidents) world[kind](choice);
      world.finish();
      expect(world.state.groups.map(({ group }) => group)).toEqual(planned);
      expect(world.state.weights).toEqual(wanted);
    }),
    { numRuns: 300 },
  );
});

test("[F7] [A9] the weights are the same whichever episodes fail or lack a row, with crashes and without", () => {
  fc.assert(
    fc.property(fc.array(accident, { maxLength: 150 }), someRollouts, someRollouts, (accidents, bad, half) => {
      const failing = new Set(bad);
      const torn = new Set(half.flatMap((rollout) => [`${rollout}/0`, `${rollout}/2`]));
      const world = new World({ failing, torn });
      for (const { kind, choice } of accidents) world[kind](choice);
      world.finish();
      expect(world.state.groups.map(({ group }) => group)).toEqual(planned);
      expect(world.state.weights).toEqual(undisturbed(failing));
      const trained = world.state.groups.flatMap(({ episodes }) => episodes);
      expect(trained.filter(({ rollout, attempt }) => torn.has(`${rollout}/${attempt}`))).toEqual([]);
      expect(trained.filter(({ status }) => status !== "finished").map(({ rollout }) => rollout)).toEqual(
        rollouts.filter((rollout) => failing.has(rollout)),
      );
    }),
    { numRuns: 300 },
  );
});

test("[L12] what is learnt was sampled with the weights that the plan pins it to, also where outcomes vary", () => {
  fc.assert(
    fc.property(fc.array(accident, { maxLength: 200 }), (accidents) => {
      const world = new World({ fickle: true });
      for (const { kind, choice } of accidents) world[kind](choice);
      world.finish();
      expect(world.state.groups.map(({ group }) => group)).toEqual(planned);
      expect(world.strays).toEqual([]);
    }),
    { numRuns: 300 },
  );
});

const clock = { nowMs: 5000, lastAtMs: 1000, everyMs: 4000, trained: false, moved: true, running: true };

test.each([
  ["by time", {}, true],
  ["before its time", { nowMs: 4999 }, false],
  ["after a group was trained, at once", { nowMs: 1001, trained: true, moved: false, running: false }, true],
  ["where nothing was said since", { moved: false }, false],
  ["where no episode is on its way", { running: false }, false],
  ["where there are to be none", { everyMs: 0, trained: true }, false],
])("whether a checkpoint is due %s", (_, change, due) => {
  const situation = { groups: worldGroups, state: firstState(worldPlan), attempts: new ControlHistory("HP_t") };
  expect(checkpointDue(situation, { ...clock, ...change })).toBe(due);
  const ended = { ...situation.state, version: worldGroups.length };
  expect(checkpointDue({ ...situation, state: ended }, { ...clock, ...change })).toBe(false);
});
