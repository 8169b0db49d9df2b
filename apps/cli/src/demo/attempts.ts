/** The attempts of a rollout on the clock of the stream: when each began and ended, worked, and was parked. */
import type { Span } from "@holdpoint/episode";
import { type ControlFacts, type RestoreFacts } from "./checkpoints.ts";
import type { RolloutHistory } from "./rollout-history.ts";

export interface AttemptFacts {
  readonly attempt: number;
  readonly openedAtMs: number;
  /** When its episode ended, or it was given up; null: never. */
  readonly endedAtMs: number | null;
  /** `finished` and so on; `abandoned`: given up for a replacement; `open`: neither. */
  readonly end: string;
  /** Where it goes on from; null: from the input of the rollout. */
  readonly from: { readonly attempt: number; readonly source: string } | null;
  /** When the agent was at work on it. */
  readonly active: readonly Span[];
  readonly parked: readonly Span[];
}

type Marked = { readonly type: string; readonly attempt: number; readonly timeMs: number };

/** Oldest first. */
export function attemptFacts(
  rollout: string,
  part: RolloutHistory,
  { restores, lastMs }: Pick<ControlFacts, "restores"> & { readonly lastMs: number },
): readonly AttemptFacts[] {
  const marked = [...part.environment, ...part.agent].flatMap(({ event, timeMs }): Marked[] =>
    "attempt" in event.data ? [{ type: event.type, attempt: event.data.attempt, timeMs }] : [],
  );
  const numbers = [...new Set(marked.map(({ attempt }) => attempt))].toSorted((one, other) => one - other);
  const openings = numbers.map((attempt) => earliest(marked, attempt));
  return numbers.map((attempt, at) => {
    const own = marked.filter((mark) => mark.attempt === attempt);
    const ended = part.environment.find(
      ({ event }) => event.type === "episode.ended" && event.data.attempt === attempt,
    );
    const next = openings[at + 1];
    const status = ended?.event.type === "episode.ended" ? ended.event.data.status : undefined;
    const abandonedAtMs = next === undefined ? null : givenUpAt(restores, earliest(marked, attempt), next);
    const endedAtMs = ended?.timeMs ?? abandonedAtMs;
    return {
      attempt,
      openedAtMs: earliest(marked, attempt),
      endedAtMs,
      end: status ?? (next === undefined ? "open" : "abandoned"),
      from: originOf(restores, rollout, attempt),
      active: spans(
        own,
        { from: ["activation.started", "call.requested"], to: ["activation.ended"] },
        endedAtMs ?? lastMs,
      ),
      parked: spans(own, { from: ["session.parked"], to: ["session.unparked"] }, endedAtMs ?? lastMs),
    };
  });
}

function earliest(marked: readonly Marked[], attempt: number): number {
  return Math.min(...marked.filter((mark) => mark.attempt === attempt).map(({ timeMs }) => timeMs));
}

/** A restore gives up what was before it when it begins; else an attempt lasts until the next. */
function givenUpAt(restores: readonly RestoreFacts[], openedAtMs: number, nextMs: number): number {
  const restore = restores.find(({ startedAtMs }) => startedAtMs >= openedAtMs && startedAtMs <= nextMs);
  return restore?.startedAtMs ?? nextMs;
}

function originOf(restores: readonly RestoreFacts[], rollout: string, attempt: number): AttemptFacts["from"] {
  for (const { continued, source, installedAtMs } of restores) {
    const origin = continued.find((episode) => episode.rollout === rollout && episode.attempt === attempt);
    if (origin !== undefined && installedAtMs !== null) return { attempt: origin.from, source };
  }
  return null;
}

/** From each first mark of `from` to the next of `to`; an open one ends at `lastMs`. */
function spans(
  marked: readonly Marked[],
  { from, to }: { readonly from: readonly string[]; readonly to: readonly string[] },
  lastMs: number,
): readonly Span[] {
  const found: Span[] = [];
  let sinceMs: number | undefined;
  for (const { type, timeMs } of marked.toSorted((one, other) => one.timeMs - other.timeMs)) {
    if (from.includes(type)) sinceMs ??= timeMs;
    else if (to.includes(type) && sinceMs !== undefined) {
      found.push({ fromMs: sinceMs, toMs: timeMs });
      sinceMs = undefined;
    }
  }
  if (sinceMs !== undefined) found.push({ fromMs: sinceMs, toMs: Math.max(sinceMs, lastMs) });
  return found;
}
