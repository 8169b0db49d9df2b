/** That the policy learns, shown in memory: the environment is `workbench.ts`, seeds fix everything. */
import { defaultLearningRate, featureNames, initialWeights, planRun, reinforce } from "@holdpoint/repair";
import { expect, test } from "vitest";
import { play } from "./workbench.ts";

interface Trained {
  /** For each group the share of its rollouts that repaired the package. */
  readonly solved: readonly number[];
  readonly weights: readonly number[];
}

function train(seed: number, rollouts: number, learningRate: number): Trained {
  const solved: number[] = [];
  const versions: (readonly number[])[] = [initialWeights()];
  for (const { task, rollouts: planned, policyVersion } of planRun({ seed, rollouts })) {
    const weights = versions[policyVersion] ?? [];
    const episodes = planned.map(({ rolloutId }) => {
      const { staged, ...episode } = play({ task, rolloutId, weights, runSeed: seed });
      return { ...episode, rolloutId, gradients: staged.map(({ gradient }) => gradient) };
    });
    solved.push(episodes.filter((episode) => episode.solved).length / episodes.length);
    versions.push(reinforce({ weights: versions.at(-1) ?? [], groups: [{ rollouts: episodes }], learningRate }));
  }
  return { solved, weights: versions.at(-1) ?? [] };
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

test("later groups repair clearly more than the first ones did", () => {
  const { solved, weights } = train(1, 160, defaultLearningRate);
  const first = mean(solved.slice(0, 10));
  const last = mean(solved.slice(-10));
  expect(last).toBeGreaterThan(first + 0.25);
  const hint = featureNames.indexOf("inside the hinted lines");
  expect(weights[hint]).toBeGreaterThan(1);
});

test("without learning later groups repair no more than the first ones did", () => {
  const { solved, weights } = train(1, 160, 0);
  expect(mean(solved.slice(-10))).toBeLessThan(mean(solved.slice(0, 10)) + 0.15);
  expect(weights).toEqual(initialWeights());
});

test("training twice gives the same weights", () => {
  expect(train(3, 16, defaultLearningRate)).toEqual(train(3, 16, defaultLearningRate));
});
