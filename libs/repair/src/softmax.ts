/** The arithmetic of a linear softmax over candidates. */
import type { Random } from "./random.ts";

export interface Choice {
  /** Index of the chosen candidate. */
  readonly index: number;
  /** Natural logarithm of its probability. */
  readonly logprob: number;
  /** Of `logprob` by the weights: its features less their expectation. */
  readonly gradient: readonly number[];
}

/**
 * The probability of each candidate: proportional to e to the power of `weights` times its features.
 *
 * @internal exported for its tests
 */
export function probabilities(weights: readonly number[], features: readonly (readonly number[])[]): readonly number[] {
  const scores = features.map((vector) => dot(weights, vector));
  const highest = Math.max(...scores);
  const powers = scores.map((score) => Math.exp(score - highest));
  const total = powers.reduce((sum, power) => sum + power, 0);
  return powers.map((power) => power / total);
}

/** Draws one of `features`, of which there is at least one, each as long as `weights`. */
export function choose(weights: readonly number[], features: readonly (readonly number[])[], random: Random): Choice {
  const chances = probabilities(weights, features);
  const index = drawIndex(chances, random.fraction());
  const expected = weights.map((_, at) =>
    dot(
      chances,
      features.map((vector) => vector[at] ?? 0),
    ),
  );
  const chosen = features[index] ?? [];
  return {
    index,
    logprob: Math.log(chances[index] ?? 0),
    gradient: expected.map((mean, at) => (chosen[at] ?? 0) - mean),
  };
}

/** The first index at which the chances summed up exceed `fraction`; the last where rounding leaves none. */
function drawIndex(chances: readonly number[], fraction: number): number {
  let sum = 0;
  const index = chances.findIndex((chance) => {
    sum += chance;
    return fraction < sum;
  });
  return index < 0 ? chances.length - 1 : index;
}

function dot(one: readonly number[], other: readonly number[]): number {
  return one.reduce((sum, value, at) => sum + value * (other[at] ?? 0), 0);
}
