/**
 * What of an episode's time budget is used up: the sum of the intervals in which it worked, as the log shows them.
 *
 * Not charged are the intervals in which it was parked for a checkpoint, and those from a process' last word to its successor's
 * first. All instants are the stream's, epoch milliseconds.
 */

/** From `fromMs` up to `toMs`; no length where `toMs` is not after `fromMs`. */
export interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

export interface Charge {
  /** null: unbounded, and charged nothing. */
  readonly budgetMs: number | null;
  /** What earlier samples have charged, over all attempts of this history. */
  readonly chargedMs: number;
  /** Since when nothing has been charged. */
  readonly sinceMs: number;
}

/** The charge at `nowMs`, less the spans in which nobody worked. Spans may overlap and come in any order. */
export function chargeAt({ budgetMs, chargedMs, sinceMs }: Charge, nowMs: number, suspended: readonly Span[]): number {
  if (budgetMs === null) return 0;
  const elapsedMs = Math.max(0, nowMs - sinceMs);
  return chargedMs + elapsedMs - coveredMs(suspended, { fromMs: sinceMs, toMs: nowMs });
}

/** How much of `window` is covered by at least one of `spans`. */
export function coveredMs(spans: readonly Span[], window: Span): number {
  const clipped = spans
    .map(({ fromMs, toMs }) => ({ fromMs: Math.max(fromMs, window.fromMs), toMs: Math.min(toMs, window.toMs) }))
    .toSorted((one, other) => one.fromMs - other.fromMs);
  let covered = 0;
  let end = Number.NEGATIVE_INFINITY;
  for (const { fromMs, toMs } of clipped) {
    covered += Math.max(0, toMs - Math.max(fromMs, end));
    end = Math.max(end, toMs);
  }
  return covered;
}

/** What is left of a budget; `Infinity` for an unbounded one, never below 0. */
export function remainingMs(budgetMs: number | null, chargedMs: number): number {
  return budgetMs === null ? Number.POSITIVE_INFINITY : Math.max(0, budgetMs - chargedMs);
}
