import { randomOf, seedFrom, seedOf } from "@holdpoint/repair";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";

const uint32 = fc.integer({ min: 0, max: 2 ** 32 - 1 });

describe("random numbers", () => {
  test("are the same for the same seed, on every machine", () => {
    const random = randomOf(1);
    expect([random.uint32(), random.uint32(), random.uint32(), random.uint32()]).toEqual([
      393288148, 2174103013, 3814759091, 2092745082,
    ]);
    const other = randomOf(0xffff_ffff);
    expect([other.uint32(), other.uint32()]).toEqual([4104197751, 1825856343]);
  });

  test("are whole and of 32 bits, or fractions below 1, or below a bound", () => {
    fc.assert(
      fc.property(uint32, fc.integer({ min: 1, max: 1000 }), (seed, bound) => {
        const random = randomOf(seed);
        for (let draw = 0; draw < 20; draw += 1) {
          const value = random.uint32();
          expect(Number.isInteger(value) && value >= 0 && value < 2 ** 32).toBe(true);
          const fraction = random.fraction();
          expect(fraction >= 0 && fraction < 1).toBe(true);
          const below = random.below(bound);
          expect(Number.isInteger(below) && below >= 0 && below < bound).toBe(true);
        }
      }),
    );
  });

  test("are spread evenly, in the first draw of neighbouring seeds and in a long run of one", () => {
    const first = Array.from({ length: 16_000 }, (_, seed) => randomOf(seed).below(16));
    const random = randomOf(7);
    const run = Array.from({ length: 16_000 }, () => random.below(16));
    for (const drawn of [first, run]) {
      const counts = Array.from({ length: 16 }, (_, value) => drawn.filter((one) => one === value).length);
      for (const count of counts) expect(Math.abs(count - 1000)).toBeLessThan(150); // five standard deviations
    }
  });

  test("of a fraction are those of the integer, divided", () => {
    expect(randomOf(5).fraction()).toBe(randomOf(5).uint32() / 2 ** 32);
    expect(randomOf(5).below(2 ** 32)).toBe(randomOf(5).uint32());
  });
});

describe("a seed", () => {
  test("is fixed by its parts", () => {
    expect(seedFrom("task", 1, "minimist")).toBe(827178369);
    expect(seedOf(1, "g0-r0", 0)).toBe(seedFrom("turn", 1, "g0-r0", 0));
  });

  test("is another for other parts, another order, and another cut", () => {
    const seeds = [
      seedFrom("ab", "c"),
      seedFrom("a", "bc"),
      seedFrom("c", "ab"),
      seedFrom("abc"),
      seedFrom("ab", "c", ""),
      seedFrom(),
    ];
    expect(new Set(seeds).size).toBe(seeds.length);
  });

  test("of a turn depends on run, rollout and turn", () => {
    const seeds = new Set<number>();
    for (const run of [1, 2, 3]) {
      for (const rollout of ["g0-r0", "g0-r1", "g1-r0"]) {
        for (let turn = 0; turn < 20; turn += 1) seeds.add(seedOf(run, rollout, turn));
      }
    }
    expect(seeds.size).toBe(180);
  });

  test("is a whole number of 32 bits", () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.string(), fc.integer())), (parts) => {
        const seed = seedFrom(...parts);
        expect(Number.isInteger(seed) && seed >= 0 && seed < 2 ** 32).toBe(true);
      }),
    );
  });
});
