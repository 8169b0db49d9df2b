import { advantagesOf, defaultLearningRate, reinforce, type TrainedRollout, weightsDigest } from "@holdpoint/repair";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";

function rollout(rolloutId: string, reward: number, ...gradients: readonly (readonly number[])[]): TrainedRollout {
  return { rolloutId, reward, gradients };
}

const good = rollout("g0-r0", 1, [1, 0], [1, 2]);
const bad = rollout("g0-r1", 0, [0, 1]);

function train(rollouts: readonly TrainedRollout[]) {
  return reinforce({ weights: [0.1, 0.2], groups: [{ rollouts }], learningRate: defaultLearningRate });
}

describe("advantages", () => {
  test("are distances from the mean in standard deviations", () => {
    expect(advantagesOf([1, 0])).toEqual([1, -1]);
    const [best = 0, ...others] = advantagesOf([1, 0, 0, 0]);
    expect(best).toBeCloseTo(Math.sqrt(3), 9);
    for (const other of others) expect(other).toBeCloseTo(-1 / Math.sqrt(3), 9);
  });

  test("are all zero where rewards are equal", () => {
    expect(advantagesOf([0.5, 0.5, 0.5])).toEqual([0, 0, 0]);
    expect(advantagesOf([1])).toEqual([0]);
    expect(advantagesOf([])).toEqual([]);
  });
});

describe("a step of REINFORCE", () => {
  test("moves the weights along the gradients of what went better than its siblings, and against the others", () => {
    // Advantages 1 and -1; sums of gradients [2, 2] and [0, 1]; mean [1, 0.5]; rate 0.1.
    const moved = reinforce({ weights: [1, 1], groups: [{ rollouts: [good, bad] }], learningRate: 0.1 });
    expect(moved).toEqual([1.1, 1.05]);
  });

  test("changes nothing by a group whose rewards are equal, by an empty one, or by none", () => {
    const weights = [0.25, -3];
    const even = { rollouts: [good, { ...bad, reward: 1 }] };
    for (const groups of [[], [even], [{ rollouts: [] }], [{ rollouts: [good] }]]) {
      expect(reinforce({ weights, groups, learningRate: 1 })).toEqual(weights);
    }
  });

  test("adds up over groups, in their order", () => {
    const one = { rollouts: [good, bad] };
    const two = { rollouts: [rollout("g1-r0", 0, [4, 4]), rollout("g1-r1", 1)] };
    const stepwise = reinforce({
      weights: reinforce({ weights: [0, 0], groups: [one], learningRate: 0.1 }),
      groups: [two],
      learningRate: 0.1,
    });
    expect(reinforce({ weights: [0, 0], groups: [one, two], learningRate: 0.1 })).toEqual(stepwise);
  });

  test("adds up in the order of ids, which rounding tells from any other", () => {
    const [a, b, c, d] = [
      rollout("a", 1, [1e16]),
      rollout("b", 0, [-3]),
      rollout("c", 1, [-1e16]),
      rollout("d", 0, [-3]),
    ];
    // ((1e16 + 3) - 1e16) + 3 is 7 in floating point; in other orders it is 6 or 8.
    for (const rollouts of [
      [a, c, b, d],
      [d, b, c, a],
      [a, b, c, d],
    ]) {
      expect(reinforce({ weights: [0], groups: [{ rollouts }], learningRate: 1 })).toEqual([7 / 4]);
    }
  });

  test("gives the same weights to the last bit, in whatever order the rollouts ended", () => {
    const fraction = fc.double({ min: -1, max: 1, noNaN: true });
    const outcome = fc.record({
      reward: fraction,
      gradients: fc.array(fc.tuple(fraction, fraction), { maxLength: 4 }),
    });
    fc.assert(
      fc.property(fc.array(outcome, { maxLength: 6 }), fc.infiniteStream(fc.nat()), (outcomes, keys) => {
        const rollouts = outcomes.map(({ reward, gradients }, index) => rollout(`g0-r${index}`, reward, ...gradients));
        const shuffled = rollouts
          .map((one) => ({ one, key: keys.next().value ?? 0 }))
          .toSorted((left, right) => left.key - right.key)
          .map(({ one }) => one);
        expect(weightsDigest(train(shuffled))).toBe(weightsDigest(train(rollouts)));
      }),
    );
  });
});

describe("the digest of weights", () => {
  test("is the SHA-256 of their bytes as big-endian 64-bit floats", () => {
    expect(weightsDigest([])).toBe("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    expect(weightsDigest([1, -2.5])).toBe("f6cf245729bf73f75bd899b4b9839d4a7d46ad671c85b6f32b961593ecd13bdb");
  });

  test("is another for other weights, and survives JSON", () => {
    const weights = [0.1 + 0.2, 1e-300, -7];
    const others = [
      [0.3, 1e-300, -7],
      [0.1 + 0.2, 1e-300],
      [1e-300, 0.1 + 0.2, -7],
      [0.1 + 0.2, 0, -7],
    ];
    for (const other of others) expect(weightsDigest(other)).not.toBe(weightsDigest(weights));
    const parsed: unknown = JSON.parse(JSON.stringify(weights));
    expect(parsed).toEqual(weights);
  });
});
