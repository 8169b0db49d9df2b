/**
 * What an episode's history has charged to its budget, summed from the log alone: along its path, from the opening of each
 * attempt to where the next one leaves it, less what was parked, what passed between the last word of a dead process and the
 * first of its successor, and what passed while the broker was away.
 *
 * A charge is fixed by each sample at a cut and by the end of the episode. So each stretch between two of them is judged by what
 * the log showed when it ended: that a process was down is known once its successor is there.
 */
import { coveredMs, type Span } from "@holdpoint/episode";
import type { Path, Recorded, Segment } from "@holdpoint/eventsourcing";
import type { History } from "./history.ts";
import type { RolloutHistory } from "./rollout-history.ts";

export function workedMs(path: Path, part: RolloutHistory, history: History): number {
  const idle = [...downtimes(history), ...outages(history)];
  const stretches = path.flatMap((segment) => stretchesOf(part, segment));
  return stretches
    .map((stretch) => lengthOf(stretch) - coveredMs(known([...idle, ...parkings(part, stretch)], stretch), stretch))
    .reduce((total, worked) => total + worked, 0);
}

/** A span, and the sequence from which on the log shows it. */
interface Shown extends Span {
  readonly sequence: number;
}

/** Between two fixings of the charge; `sequence` is that of the latter. */
interface Stretch extends Shown {
  readonly attempt: number;
}

function lengthOf({ fromMs, toMs }: Span): number {
  return Math.max(0, toMs - fromMs);
}

function known(spans: readonly Shown[], { sequence }: Stretch): readonly Span[] {
  return spans.filter((span) => span.sequence <= sequence);
}

/** When processes of the run were down. */
function downtimes({ control }: History): readonly Shown[] {
  return control.flatMap(({ event, sequence }) =>
    event.type === "participant.joined" && event.data.lastAtMs !== null
      ? [{ fromMs: event.data.lastAtMs, toMs: event.data.announcedAtMs, sequence }]
      : [],
  );
}

/** When the broker was away, as the environment noticed it, or there was no environment, as it says itself. */
function outages({ environment }: History): readonly Shown[] {
  return environment.flatMap(({ event, sequence, timeMs }) => {
    const isBack = event.type === "participant.reconnected" || event.type === "participant.announced";
    if (!isBack || event.data.lastAtMs === null) return [];
    return [{ fromMs: event.data.lastAtMs, toMs: timeMs, sequence }];
  });
}

/** Of one attempt, up to its last sample on the path; of the last attempt, up to the verdict, after which only cleanup follows. */
function stretchesOf(part: RolloutHistory, { attempt, upTo }: Segment): readonly Stretch[] {
  const own = part.environment.filter(
    ({ event, sequence }) => "attempt" in event.data && event.data.attempt === attempt && sequence <= upTo,
  );
  const opened = own.find(({ event }) => event.type === "episode.opened");
  const samples = own.filter(({ event }) => event.type === "episode.charged");
  const marks = [opened, ...samples, Number.isFinite(upTo) ? undefined : endAfter(own, samples.at(-1)?.sequence ?? 0)];
  const there = marks.filter((mark) => mark !== undefined);
  return there.slice(1).map(({ timeMs, sequence }, at) => {
    return { attempt, fromMs: there[at]?.timeMs ?? timeMs, toMs: timeMs, sequence };
  });
}

type Own = RolloutHistory["environment"];

function endAfter(own: Own, sample: number): Own[number] | undefined {
  const judged = own.find(({ event }) => event.type === "episode.bookmarked" && event.data.stage === "return");
  if (judged !== undefined && judged.sequence > sample) return judged;
  return own.find(({ event }) => event.type === "episode.ended");
}

function parkings(part: RolloutHistory, stretch: Stretch): readonly Shown[] {
  return [...parkedIn(part.environment, stretch), ...parkedIn(part.agent, stretch)];
}

/** Shown from its beginning on; one that has not ended ends with the stretch. */
function parkedIn(
  records: readonly Recorded<{ readonly type: string; readonly data: object }>[],
  { attempt, toMs }: Stretch,
): readonly Shown[] {
  const spans: Shown[] = [];
  let since: Shown | undefined;
  for (const { event, timeMs, sequence } of records) {
    if (!("attempt" in event.data) || event.data.attempt !== attempt) continue;
    if (event.type === "session.parked") since ??= { fromMs: timeMs, toMs, sequence };
    if (event.type !== "session.unparked" || since === undefined) continue;
    spans.push({ ...since, toMs: timeMs });
    since = undefined;
  }
  return since === undefined ? spans : [...spans, since];
}
