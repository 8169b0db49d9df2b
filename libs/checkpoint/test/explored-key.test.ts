/** That an exploration may take worlds of one key for one: whatever can happen in one can happen in the other, and leads to one key. */
import { expect, test } from "vitest";
import { keyOf } from "./small-run-key.ts";
import { spaceOf } from "./small-run-space.ts";
import { beginningOf, type Fault, stories, type StoryName } from "./small-run-stories.ts";
import type { World } from "./small-run.ts";

const maxStates = 400;

const cases: readonly (readonly [StoryName, Fault])[] = [
  ["one checkpoint", "lags"],
  ["one restore", "dies"],
  ["a removal", "time passes"],
  ["a release", "the leader is slow"],
];

/** What can happen in a world, and the key of what comes of it. */
type Onwards = readonly (readonly [string, string])[];

/** Pairs of what two worlds of one key, reached by different ways, go on to. */
function twinsOf(name: StoryName, fault: Fault): readonly (readonly [Onwards, Onwards])[] {
  const { actions, after } = spaceOf(stories[name].commands);
  const onwards = (world: World): Onwards => actions(world).map((action) => [action, keyOf(after(world, action))]);
  const twins: [Onwards, Onwards][] = [];
  const known = new Map<string, Onwards>();
  const queue: World[] = [];

  function visit(world: World): void {
    const key = keyOf(world);
    const before = known.get(key);
    if (before !== undefined) twins.push([before, onwards(world)]);
    else if (known.size < maxStates) {
      known.set(key, onwards(world));
      queue.push(world);
    }
  }

  visit(beginningOf(stories[name], [fault]));
  for (const world of queue) for (const action of actions(world)) visit(after(world, action));
  return twins;
}

test.each(cases)("worlds of one key go on alike: %s, %s", (name, fault) => {
  const twins = twinsOf(name, fault);
  expect(twins.length).toBeGreaterThan(100);
  expect(twins.map(([, other]) => other)).toEqual(twins.map(([one]) => one));
});
