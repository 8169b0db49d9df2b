/** The crash matrix of the coordinator: it is killed at every point of a run in which every operation happens. */
import { operations } from "@holdpoint/schemas";
import { expect, test } from "vitest";
import { type Ended, played, scenario, scenarioRun } from "./crash-scenario.ts";
import { member, type Simulation } from "./simulation.ts";

type Trouble = (simulation: Simulation) => void;

function failing() {
  return { problem: { code: "unavailable" as const, message: "no disk" } };
}

/** What goes wrong beside, and at every how many-th append the coordinator is killed. */
const troubles: readonly (readonly [string, number, Trouble])[] = [
  ["everybody does what is asked", 1, () => {}],
  [
    "the model is silent at every commit and resume",
    5,
    (simulation) => {
      member(simulation, "model").behaviour = { commit: () => undefined, resume: () => undefined };
    },
  ],
  [
    "the agent fails every capture and restore",
    5,
    (simulation) => {
      member(simulation, "agent").behaviour = { capture: failing, restore: failing };
    },
  ],
];

/** A run in which `trouble` and whatever `kill` arranges happen. */
async function endOf(trouble: Trouble, kill: (simulation: Simulation) => void = () => {}): Promise<Ended> {
  const simulation = await scenarioRun();
  trouble(simulation);
  kill(simulation);
  return played(simulation);
}

test("the scenario contains every operation", () => {
  const named = scenario.flatMap((step) => ("until" in step ? [] : [step[0]]));
  expect([...new Set(named)].toSorted()).toEqual([...operations].toSorted());
});

test.each(troubles)(
  "[L1] [L11] killed before or after any append, or before any reply, it is followed by one that ends everything the same: %s",
  async (what, stride, trouble) => {
    const undisturbed = await scenarioRun();
    trouble(undisturbed);
    const expected = await played(undisturbed);
    const { appends } = undisturbed;
    expect(appends).toBeGreaterThan(60);
    let points = 0;
    for (let at = 1; at <= appends; at += stride) {
      const before = await endOf(trouble, (simulation) => (simulation.killBefore = (append) => append === at));
      expect(before, `killed before append ${at}`).toEqual(expected);
      const after = await endOf(trouble, (simulation) => (simulation.killAfter = (append) => append === at));
      expect(after, `killed after append ${at}`).toEqual(expected);
      points += 2;
    }
    for (let at = 1; at <= expected.answers.length; at += stride) {
      const simulation = await scenarioRun();
      trouble(simulation);
      const told = await played(simulation, async (reply) => (reply === at ? simulation.takeOver() : undefined));
      expect(told, `killed before reply ${at}`).toEqual(expected);
      points += 1;
    }
    process.stdout.write(`crash matrix, ${what}: the coordinator was killed at ${points} points\n`);
  },
);

test("[L11] where each of them decides once, and dies, everything ends the same", async () => {
  const expected = await endOf(() => {});
  const often = await endOf(
    () => {},
    (simulation) => (simulation.killAfter = () => true),
  );
  expect(often).toEqual(expected);
});
