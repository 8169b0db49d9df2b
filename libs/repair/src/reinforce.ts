/**
 * How the softmax policy learns: REINFORCE (R. J. Williams, 1992), with the rewards of siblings as baseline.
 *
 * Every sum is taken in the order of ids, so that the same rollouts give the same weights to the last bit, in whatever order
 * they ended.
 */
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";

export interface TrainedRollout {
  readonly rolloutId: string;
  /** In 0..1. A rollout that infrastructure failed has none, and is left out. */
  readonly reward: number;
  /** One for each choice, in the order of turns; each as long as the weights. */
  readonly gradients: readonly (readonly number[])[];
}

export interface TrainedGroup {
  readonly rollouts: readonly TrainedRollout[];
}

export interface ReinforceOptions {
  readonly weights: readonly number[];
  /** In the order of the plan. */
  readonly groups: readonly TrainedGroup[];
  /** Positive. */
  readonly learningRate: number;
}

/** The rate that the reference workload learns with. */
export const defaultLearningRate = 1;

/**
 * The weights after one step over `groups`: for each group the mean over its rollouts of advantage times the sum of
 * gradients. A group of equal rewards changes nothing.
 */
export function reinforce({ weights, groups, learningRate }: ReinforceOptions): readonly number[] {
  return groups.reduce((moved, group) => stepOf(moved, group, learningRate), weights);
}

/** How much better each reward is than the mean, in standard deviations; 0 for all where they are equal. */
export function advantagesOf(rewards: readonly number[]): readonly number[] {
  const mean = sum(rewards) / rewards.length;
  const deviation = Math.sqrt(sum(rewards.map((reward) => (reward - mean) ** 2)) / rewards.length);
  return rewards.map((reward) => (deviation > 0 ? (reward - mean) / deviation : 0));
}

/** SHA-256 of the weights as big-endian 64-bit floats, lower-case hexadecimal: equal for equal weights alone. */
export function weightsDigest(weights: readonly number[]): string {
  const bytes = new DataView(new ArrayBuffer(weights.length * 8));
  for (const [index, weight] of weights.entries()) bytes.setFloat64(index * 8, weight);
  return bytesToHex(sha256(new Uint8Array(bytes.buffer)));
}

function stepOf(weights: readonly number[], group: TrainedGroup, learningRate: number): readonly number[] {
  const rollouts = group.rollouts.toSorted((one, other) => (one.rolloutId < other.rolloutId ? -1 : 1));
  const advantages = advantagesOf(rollouts.map(({ reward }) => reward));
  return weights.map((weight, at) => {
    const moves = rollouts.map(({ gradients }, index) => {
      return (advantages[index] ?? 0) * sum(gradients.map((gradient) => gradient[at] ?? 0));
    });
    return weight + learningRate * (sum(moves) / Math.max(rollouts.length, 1));
  });
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
