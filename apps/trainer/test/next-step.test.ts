import * as fc from "fast-check";
import { expect, test } from "vitest";
import { World, worldGroups } from "./world.ts";

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
