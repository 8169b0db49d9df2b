import { packageNamed, packages, type PlanOptions, planRun, seedFrom, taskOf } from "@holdpoint/repair";
import { describe, expect, test } from "vitest";

describe("the plan of a run", () => {
  test("is four groups of four siblings unless told otherwise, with ids that name both", () => {
    const groups = planRun({ seed: 1 });
    expect(groups.map(({ groupId }) => groupId)).toEqual(["g0", "g1", "g2", "g3"]);
    expect(groups[2]?.rollouts).toEqual([0, 1, 2, 3].map((sibling) => ({ rolloutId: `g2-r${sibling}` })));
  });

  test("is fixed by its seed, and another for another", () => {
    expect(planRun({ seed: 1 })).toEqual(planRun({ seed: 1 }));
    expect(planRun({ seed: 1 }).map(({ task }) => task)).not.toEqual(planRun({ seed: 2 }).map(({ task }) => task));
    expect(planRun({ seed: 1 }).map(({ task }) => task.taskId)).toMatchInlineSnapshot(`
      [
        "minimist-3215-9-123",
        "expand-template-646-9-1",
        "json-stable-stringify-1795-10-46",
        "glob-to-regexp-2717-0-80",
      ]
    `);
  });

  test("has the same beginning, however long it is", () => {
    expect(planRun({ seed: 5, rollouts: 80 }).slice(0, 4)).toEqual(planRun({ seed: 5 }));
  });

  test("takes every package once before it takes one again, in another order each round", () => {
    const names = planRun({ seed: 3, rollouts: 4 * 3 * packages.length }).map(({ task }) => task.package);
    const rounds = [0, 1, 2].map((round) => names.slice(round * packages.length, (round + 1) * packages.length));
    for (const round of rounds) expect(new Set(round)).toEqual(new Set(packages.map(({ name }) => name)));
    expect(new Set(rounds.map(String)).size).toBe(3);
  });

  test("draws each group's task from run and group, so that one package is broken in many ways", () => {
    const only = packages.filter(({ name }) => name === "minimist");
    const groups = planRun({ seed: 9, rollouts: 40, packages: only });
    const [spec] = only;
    if (spec === undefined) throw new Error("minimist is gone");
    expect(groups[3]?.task).toEqual(taskOf({ seed: seedFrom("group", 9, 3), spec }));
    expect(new Set(groups.map(({ task }) => task.taskId)).size).toBeGreaterThan(7);
    expect(packageNamed(groups[0]?.task.package ?? "")).toBe(spec);
  });

  test.each([
    [0, [0, 1, 2, 3]],
    [1, [0, 0, 1, 2]],
    [2, [0, 0, 0, 1]],
    [9, [0, 0, 0, 0]],
  ])("with a lag of %i samples its groups with versions %j", (policyLag, versions) => {
    const groups = planRun({ seed: 1, policyLag });
    expect(groups.map(({ policyVersion }) => policyVersion)).toEqual(versions);
    expect(groups.map((group) => group.policyLag)).toEqual([policyLag, policyLag, policyLag, policyLag]);
  });

  test("lags by one group unless told otherwise", () => {
    expect(planRun({ seed: 1 })).toEqual(planRun({ seed: 1, policyLag: 1 }));
  });

  test("can have as few as one group of two", () => {
    expect(planRun({ seed: 1, rollouts: 2, siblings: 2 })).toHaveLength(1);
  });

  const refused: readonly (readonly [string, Omit<PlanOptions, "seed">])[] = [
    ["siblings", { siblings: 1 }],
    ["siblings", { siblings: 2.5 }],
    ["rollouts", { rollouts: 3 }],
    ["rollouts", { rollouts: 18 }],
    ["policyLag", { policyLag: -1 }],
    ["packages", { packages: [] }],
  ];
  test.each(refused)("is refused by the name of %s where that is out of range: %j", (name, options) => {
    const message = expect.stringMatching(new RegExp(`^${name}: expected a`));
    expect(() => planRun({ seed: 1, ...options })).toThrow(
      expect.objectContaining({ code: "invalid_request", message }),
    );
  });
});
