import { randomOf } from "@holdpoint/repair";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { choose, probabilities } from "../src/softmax.ts";

const number = fc.double({ min: -5, max: 5, noNaN: true });
const vector = fc.tuple(number, number, number);
const problem = fc.record({ weights: vector, features: fc.array(vector, { minLength: 1, maxLength: 6 }) });

function fixed(fraction: number) {
  return { uint32: () => 0, below: () => 0, fraction: () => fraction };
}

describe("the softmax", () => {
  test("gives each candidate a chance, and all together one", () => {
    fc.assert(
      fc.property(problem, ({ weights, features }) => {
        const chances = probabilities(weights, features);
        expect(chances.every((chance) => chance >= 0 && chance <= 1)).toBe(true);
        expect(chances.reduce((sum, chance) => sum + chance, 0)).toBeCloseTo(1, 9);
      }),
    );
  });

  test("is even without weights, and doubles with each ln 2 of score", () => {
    expect(
      probabilities(
        [0, 0],
        [
          [1, 0],
          [0, 1],
          [5, 5],
        ],
      ),
    ).toEqual([1 / 3, 1 / 3, 1 / 3]);
    const [one = 0, other = 0] = probabilities([Math.LN2], [[1], [3]]);
    expect(other / one).toBeCloseTo(4, 9);
  });

  test("does not overflow, however large the weights", () => {
    expect(probabilities([10_000], [[1], [0]])).toEqual([1, 0]);
    expect(probabilities([-10_000], [[1], [0]])).toEqual([0, 1]);
  });

  test("takes missing features for zero", () => {
    expect(probabilities([1, 1], [[], [0]])).toEqual([0.5, 0.5]);
  });
});

describe("a choice", () => {
  test("is drawn as often as its chance says", () => {
    const weights = [1];
    const features = [[0], [1], [2]];
    const chances = probabilities(weights, features);
    const random = randomOf(42);
    const counts = [0, 0, 0];
    for (let draw = 0; draw < 20_000; draw += 1) {
      const { index } = choose(weights, features, random);
      counts[index] = (counts[index] ?? 0) + 1;
    }
    for (const [index, chance] of chances.entries()) expect((counts[index] ?? 0) / 20_000).toBeCloseTo(chance, 1.7);
  });

  test("has the logarithm of its chance, and that logarithm's gradient by the weights", () => {
    const step = 1e-6;
    fc.assert(
      fc.property(problem, fc.integer({ min: 0, max: 1000 }), ({ weights, features }, seed) => {
        const { index, logprob, gradient } = choose(weights, features, randomOf(seed));
        const logprobAt = (moved: readonly number[]) => Math.log(probabilities(moved, features)[index] ?? 0);
        expect(logprob).toBeCloseTo(logprobAt(weights), 9);
        expect(gradient).toHaveLength(weights.length);
        if (logprob < -12) return; // too steep for a difference to be a derivative
        for (const [at, slope] of gradient.entries()) {
          const up = weights.with(at, (weights[at] ?? 0) + step);
          const down = weights.with(at, (weights[at] ?? 0) - step);
          expect(slope).toBeCloseTo((logprobAt(up) - logprobAt(down)) / (2 * step), 3);
        }
      }),
    );
  });

  test("among one is that one, for certain, and teaches nothing", () => {
    expect(choose([3, 4], [[1, 2]], randomOf(1))).toEqual({ index: 0, logprob: 0, gradient: [0, 0] });
  });

  test("is the first whose summed chances exceed the draw, and the last where rounding leaves none", () => {
    const features = [[0], [0], [0], [0]];
    expect([0, 0.24, 0.25, 0.74, 0.75, 1].map((fraction) => choose([0], features, fixed(fraction)).index)).toEqual([
      0, 0, 1, 2, 3, 3,
    ]);
  });
});
