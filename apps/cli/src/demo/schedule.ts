/**
 * When what is killed: a plan over the progress of a run, never over its time, so that a seed means the same on every machine.
 *
 * Progress is the number of model calls that agents have received since the run began, those of abandoned attempts included.
 */
import { randomOf, type Random, seedFrom } from "@holdpoint/repair";

/** What is killed one at a time. */
export const victims = ["coordinator", "environment", "agent", "resources", "model", "trainer", "broker"] as const;
export type Victim = (typeof victims)[number];

export const chaosLevels = ["none", "some", "heavy"] as const;
export type ChaosLevel = (typeof chaosLevels)[number];

export interface PlannedKill {
  /** `everything`: every process and the broker at once; then the run is restored from its latest checkpoint. */
  readonly victim: Victim | "everything";
  /** It is due once this many calls were received. */
  readonly afterCalls: number;
  /** Further milliseconds from then on, so that it hits between events as well as at them. */
  readonly delayMs: number;
  /** Milliseconds from the death of a process to the start of its successor. */
  readonly downMs: number;
}

export interface ScheduleOptions {
  /** An integer of [0, 2^32). */
  readonly seed: number;
  readonly level: ChaosLevel;
  /** Calls that the run takes when nothing disturbs it. */
  readonly calls: number;
}

const rounds: Readonly<Record<ChaosLevel, number>> = { none: 0, some: 1, heavy: 3 };

/** Shares of the run in which single kills fall: something runs already, and there is still something to do. */
const singles = { from: 0.06, to: 0.92 };
/** Where everything is killed: late enough for a checkpoint, early enough for something to lose. */
const everything = { from: 0.4, to: 0.7 };
const longestDelayMs = 150;
const longestDownMs = 200;

/** The kills of a run in the order in which they are due; every victim, and everything together, once for each round. */
export function scheduleKills({ seed, level, calls }: ScheduleOptions): readonly PlannedKill[] {
  const kills = Array.from({ length: rounds[level] }, (_, round) => {
    const random = randomOf(seedFrom("chaos", seed, round));
    const single = victims.map((victim) => kill(random, victim, { calls, window: singles }));
    return [...single, kill(random, "everything", { calls, window: sliceOf(everything, round, rounds[level]) })];
  });
  return kills.flat().toSorted((one, other) => one.afterCalls - other.afterCalls);
}

interface Window {
  readonly from: number;
  readonly to: number;
}

function kill(
  random: Random,
  victim: PlannedKill["victim"],
  { calls, window }: { readonly calls: number; readonly window: Window },
): PlannedKill {
  const share = window.from + random.fraction() * (window.to - window.from);
  return {
    victim,
    afterCalls: Math.max(1, Math.floor(share * calls)),
    delayMs: random.below(longestDelayMs),
    downMs: random.below(longestDownMs),
  };
}

/** Part `index` of `count` of a window, so that kills of everything do not fall together. */
function sliceOf({ from, to }: Window, index: number, count: number): Window {
  const width = (to - from) / count;
  return { from: from + index * width, to: from + (index + 1) * width };
}
