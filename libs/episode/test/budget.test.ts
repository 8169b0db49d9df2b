/** Time budgets: what is charged, against a clock that looks at every millisecond. */
import { chargeAt, coveredMs, remainingMs, type Span } from "@holdpoint/episode";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";

const instant = fc.integer({ min: 0, max: 60 });
const span = fc.record({ fromMs: instant, toMs: instant });
const spans = fc.array(span, { maxLength: 6 });

/** Whether the millisecond that begins at `atMs` lies in one of these. */
function isIn(all: readonly Span[], atMs: number): boolean {
  return all.some(({ fromMs, toMs }) => fromMs <= atMs && atMs < toMs);
}

/** How many milliseconds of the window fulfil `counts`. */
function counted({ fromMs, toMs }: Span, counts: (atMs: number) => boolean): number {
  return Array.from({ length: Math.max(0, toMs - fromMs) }, (_, index) => fromMs + index).filter(counts).length;
}

const budgetMs = 30_000;

describe("what spans cover of a window", () => {
  test("is what a clock counts that looks at every millisecond", () => {
    fc.assert(
      fc.property(spans, span, (all, window) => {
        expect(coveredMs(all, window)).toBe(counted(window, (atMs) => isIn(all, atMs)));
      }),
    );
  });

  test("counts once where they overlap, touch or lie in one another, in any order", () => {
    const window = { fromMs: 0, toMs: 100 };
    const [early, middle, late] = [
      { fromMs: 10, toMs: 30 },
      { fromMs: 20, toMs: 25 },
      { fromMs: 30, toMs: 50 },
    ];
    expect(coveredMs([late, middle, early], window)).toBe(40);
    expect(coveredMs([early, early], window)).toBe(20);
  });

  test("counts nothing outside the window, and nothing of spans without length", () => {
    const window = { fromMs: 10, toMs: 20 };
    expect(
      coveredMs(
        [
          { fromMs: 0, toMs: 10 },
          { fromMs: 20, toMs: 30 },
          { fromMs: 15, toMs: 15 },
        ],
        window,
      ),
    ).toBe(0);
    expect(coveredMs([{ fromMs: 18, toMs: 12 }], window)).toBe(0);
    expect(coveredMs([{ fromMs: Number.NEGATIVE_INFINITY, toMs: Number.POSITIVE_INFINITY }], window)).toBe(10);
    expect(coveredMs([], window)).toBe(0);
  });
});

describe("[S3] a charge", () => {
  test("is the time since the last sample in which somebody worked, after what was charged before", () => {
    fc.assert(
      fc.property(spans, fc.nat(100), instant, instant, (suspended, chargedMs, sinceMs, nowMs) => {
        const worked = counted({ fromMs: sinceMs, toMs: nowMs }, (atMs) => !isIn(suspended, atMs));
        expect(chargeAt({ budgetMs, chargedMs, sinceMs }, nowMs, suspended)).toBe(chargedMs + worked);
      }),
    );
  });

  test("never falls as time goes on, and is the same however often it is sampled", () => {
    fc.assert(
      fc.property(spans, fc.array(instant, { minLength: 1, maxLength: 5 }), (suspended, instants) => {
        const samples = instants.toSorted((one, other) => one - other);
        let charge = { budgetMs, chargedMs: 0, sinceMs: 0 };
        for (const nowMs of samples) {
          const chargedMs = chargeAt(charge, nowMs, suspended);
          expect(chargedMs).toBeGreaterThanOrEqual(charge.chargedMs);
          charge = { budgetMs, chargedMs, sinceMs: nowMs };
        }
        expect(charge.chargedMs).toBe(chargeAt({ budgetMs, chargedMs: 0, sinceMs: 0 }, samples.at(-1) ?? 0, suspended));
      }),
    );
  });

  test("leaves the replacement 10 s of a 30 s budget of which 20 s were worked, so that it times out 11 s later", () => {
    const atCutMs = chargeAt({ budgetMs, chargedMs: 0, sinceMs: 1_000 }, 21_000, []);
    expect(atCutMs).toBe(20_000);
    expect(remainingMs(budgetMs, atCutMs)).toBe(10_000);
    const replacement = { budgetMs, chargedMs: atCutMs, sinceMs: 500_000 };
    expect(remainingMs(budgetMs, chargeAt(replacement, 509_999, []))).toBe(1);
    expect(remainingMs(budgetMs, chargeAt(replacement, 511_000, []))).toBe(0);
  });

  test("adds up over a second checkpoint", () => {
    const second = chargeAt({ budgetMs, chargedMs: 20_000, sinceMs: 100_000 }, 104_000, []);
    expect(second).toBe(24_000);
    expect(remainingMs(budgetMs, second)).toBe(6_000);
  });

  test("does not grow while the episode is parked, or while a process is down", () => {
    const charge = { budgetMs, chargedMs: 0, sinceMs: 0 };
    const parked = { fromMs: 5_000, toMs: 65_000 };
    const down = { fromMs: 60_000, toMs: 70_000 };
    expect(chargeAt(charge, 65_000, [parked])).toBe(5_000);
    expect(chargeAt(charge, 72_000, [parked, down])).toBe(7_000);
  });

  test("is nothing for an unbounded episode, whatever an older record says", () => {
    expect(chargeAt({ budgetMs: null, chargedMs: 7_000, sinceMs: 0 }, 10_000, [])).toBe(0);
  });

  test("stays where the clock is behind the last sample", () => {
    expect(chargeAt({ budgetMs, chargedMs: 3, sinceMs: 100 }, 90, [{ fromMs: 0, toMs: 200 }])).toBe(3);
  });
});

describe("what is left of a budget", () => {
  test("is never below nothing, and without an end where there is no budget", () => {
    expect(remainingMs(10, 4)).toBe(6);
    expect(remainingMs(10, 10)).toBe(0);
    expect(remainingMs(10, 11)).toBe(0);
    expect(remainingMs(null, 1_000_000)).toBe(Number.POSITIVE_INFINITY);
  });
});
