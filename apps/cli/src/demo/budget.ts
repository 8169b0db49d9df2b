/**
 * What an episode's history has charged to its budget, summed from the log alone: along its path, the time from the opening of
 * each attempt to where the next one leaves it, less what was parked, what passed between the last word of a dead process and
 * the first of its successor, and what passed while the broker was away.
 */
import { coveredMs, type Span } from "@holdpoint/episode";
import type { Path, Recorded } from "@holdpoint/eventsourcing";
import type { ControlEvent } from "@holdpoint/schemas";
import type { History } from "./history.ts";
import type { RolloutHistory } from "./rollout-history.ts";

export function workedMs(path: Path, part: RolloutHistory, history: History): number {
  const down = [...downtimes(history.control), ...outages(history)];
  let total = 0;
  for (const { attempt, upTo } of path) {
    const leftAtMs = Number.isFinite(upTo) ? timeAt(history.control, upTo) : undefined;
    const window = windowOf(part, attempt, leftAtMs);
    if (window === undefined) continue;
    const idle = [...down, ...parkedSpans(part, attempt, window.toMs)];
    total += Math.max(0, window.toMs - window.fromMs) - coveredMs(idle, window);
  }
  return total;
}

/** When processes of the run were down, on the clock of the stream. */
export function downtimes(control: History["control"]): readonly Span[] {
  return control.flatMap(({ event }) =>
    event.type === "participant.joined" && event.data.lastAtMs !== null
      ? [{ fromMs: event.data.lastAtMs, toMs: event.data.announcedAtMs }]
      : [],
  );
}

/** When the broker was away, as the environment noticed it. */
function outages({ environment }: History): readonly Span[] {
  return environment.flatMap(({ event, timeMs }) =>
    event.type === "participant.reconnected" ? [{ fromMs: event.data.lastAtMs, toMs: timeMs }] : [],
  );
}

/**
 * From the opening of an attempt to `leftAtMs`, where its replacement left it; else to its verdict, after which only cleanup
 * follows; else to its end.
 */
function windowOf(part: RolloutHistory, attempt: number, leftAtMs: number | undefined): Span | undefined {
  const own = part.environment.filter(({ event }) => "attempt" in event.data && event.data.attempt === attempt);
  const opened = own.find(({ event }) => event.type === "episode.opened");
  const judged = own.find(({ event }) => event.type === "episode.bookmarked" && event.data.stage === "return");
  const ended = own.find(({ event }) => event.type === "episode.ended");
  const toMs = leftAtMs ?? judged?.timeMs ?? ended?.timeMs;
  return opened === undefined || toMs === undefined ? undefined : { fromMs: opened.timeMs, toMs };
}

/** When the control event at `sequence`, or the last before it, was appended. */
function timeAt(control: readonly Recorded<ControlEvent>[], sequence: number): number | undefined {
  return control.findLast((record) => record.sequence <= sequence)?.timeMs;
}

function parkedSpans(part: RolloutHistory, attempt: number, endMs: number): readonly Span[] {
  return [...parkedIn(part.environment, attempt, endMs), ...parkedIn(part.agent, attempt, endMs)];
}

function parkedIn(
  records: readonly Recorded<{ readonly type: string; readonly data: object }>[],
  attempt: number,
  endMs: number,
): readonly Span[] {
  const spans: Span[] = [];
  let sinceMs: number | undefined;
  for (const { event, timeMs } of records) {
    if (!("attempt" in event.data) || event.data.attempt !== attempt) continue;
    if (event.type === "session.parked") sinceMs ??= timeMs;
    if (event.type !== "session.unparked" || sinceMs === undefined) continue;
    spans.push({ fromMs: sinceMs, toMs: timeMs });
    sinceMs = undefined;
  }
  return sinceMs === undefined ? spans : [...spans, { fromMs: sinceMs, toMs: endMs }];
}
