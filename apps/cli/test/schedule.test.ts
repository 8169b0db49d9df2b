import { assert, integer, property } from "fast-check";
import { expect, test } from "vitest";
import { scheduleKills, victims } from "../src/demo/schedule.ts";

const seeds = integer({ min: 0, max: 2 ** 32 - 1 });

function plan(seed: number) {
  return scheduleKills({ seed, level: "some", calls: 200 });
}

test("the same seed plans the same kills, and another seed others", () => {
  expect(plan(7)).toEqual(plan(7));
  expect(plan(7)).not.toEqual(plan(8));
});

test("without chaos nothing is killed", () => {
  expect(scheduleKills({ seed: 1, level: "none", calls: 200 })).toEqual([]);
});

test.each([
  ["some", 1],
  ["heavy", 3],
] as const)("with %s chaos every victim, and everything at once, is killed %i times", (level, times) => {
  assert(
    property(seeds, (seed) => {
      const kills = scheduleKills({ seed, level, calls: 200 });
      for (const victim of [...victims, "everything"]) {
        expect(kills.filter((kill) => kill.victim === victim)).toHaveLength(times);
      }
    }),
  );
});

test("every kill is due while the run goes on, in order of progress", () => {
  assert(
    property(seeds, integer({ min: 10, max: 5000 }), (seed, calls) => {
      const due = scheduleKills({ seed, level: "heavy", calls }).map(({ afterCalls }) => afterCalls);
      expect(due).toEqual(due.toSorted((one, other) => one - other));
      expect(Math.min(...due)).toBeGreaterThan(0);
      expect(Math.max(...due)).toBeLessThan(calls);
    }),
  );
});
