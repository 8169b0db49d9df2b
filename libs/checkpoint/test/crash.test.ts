import type { Outcome } from "@holdpoint/schemas";
import { describe, expect, test } from "vitest";
import { replacements } from "./retired-run.ts";
import { type Simulation, member, startedRun } from "./simulation.ts";

const c1 = { checkpointId: "c1" };

/** Every operation once, and the ways in which they fail. */
const script: readonly (readonly [Parameters<Simulation["obeyed"]>[0], object])[] = [
  ["prepare", c1],
  ["capture", c1],
  ["proceed", c1],
  ["commit", c1],
  ["resume", c1],
  ["checkpoint", { checkpointId: "c2" }],
  ["release", { checkpointId: "c2", kept: ["c1"] }],
  ["retire", { rollouts: replacements(0) }],
  ["restore", { checkpointId: "x1", source: "c1" }],
  ["status", {}],
  ["resume", { checkpointId: "x1" }],
  ["retire", { rollouts: replacements(1) }],
  ["release", { checkpointId: "x1", kept: [] }],
  ["forget", { rollouts: ["r1", "r2"] }],
  ["prepare", c1],
];

async function played(simulation: Simulation): Promise<{ outcomes: Outcome[]; story: readonly string[] }> {
  const outcomes: Outcome[] = [];
  for (const [operation, body] of script) outcomes.push(await simulation.obeyed(operation, body));
  return { outcomes, story: await simulation.story() };
}

/** What does not depend on sequences, which every coordinator's start shifts. */
function told(outcomes: readonly Outcome[]): unknown[] {
  return outcomes.map((outcome) => {
    const words = outcome.ok ? "" : `${outcome.problem.code}: ${outcome.problem.message}`;
    const { receipt, continued, restorable, failures } = outcome.result ?? {};
    const said = { phase: outcome.result?.phase, receipt, continued, restorable };
    return {
      ok: outcome.ok,
      words: words.replaceAll(/\d+/g, "n"),
      ...said,
      failures: failures?.map(({ role }) => role),
    };
  });
}

type Trouble = (simulation: Simulation) => void;

function failing() {
  return { problem: { code: "unavailable" as const, message: "no disk" } };
}

/** What goes wrong beside, and at every how many-th append the coordinator is killed. */
const troubles: [string, number, Trouble][] = [
  ["everybody does what is asked", 1, () => {}],
  [
    "the model is silent at every commit and resume",
    3,
    (simulation) => {
      member(simulation, "model").behaviour = { commit: () => undefined, resume: () => undefined };
    },
  ],
  [
    "the agent fails every capture and restore",
    3,
    (simulation) => {
      member(simulation, "agent").behaviour = { capture: failing, restore: failing };
    },
  ],
];

describe("[L11] a coordinator that is killed after any of its appends is followed by one that ends everything the same", () => {
  test.each(troubles)("%s", async (_what, stride, trouble) => {
    const undisturbed = await startedRun();
    trouble(undisturbed);
    undisturbed.appends = 0;
    const expected = await played(undisturbed);
    expect(undisturbed.appends).toBeGreaterThan(40);
    for (let at = 1; at <= undisturbed.appends; at += stride) {
      const simulation = await startedRun();
      trouble(simulation);
      simulation.appends = 0;
      simulation.killAfter = (appends) => appends === at;
      const { outcomes, story } = await played(simulation);
      expect(told(outcomes)).toEqual(told(expected.outcomes));
      expect(story).toEqual(expected.story);
    }
  });

  test("also where each of them decides once, and dies", async () => {
    const undisturbed = await startedRun();
    const expected = await played(undisturbed);
    const simulation = await startedRun();
    simulation.killAfter = () => true;
    const { outcomes, story } = await played(simulation);
    expect(told(outcomes)).toEqual(told(expected.outcomes));
    expect(story).toEqual(expected.story);
  });
});
