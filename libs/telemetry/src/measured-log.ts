/** An event log that is measured: how long appends take, and how far what follows it is behind. */
import type { Measure, Measurement } from "@holdpoint/checkpoint";
import type { AppendResult, EventLog, Tail, TailOptions } from "@holdpoint/eventsourcing";
import { setTimeout as pause } from "node:timers/promises";
import type { MetricsSink } from "./sinks.ts";

/** What every process is measured by. */
export const processMeasures = {
  holdpoint_append_seconds: {
    kind: "histogram",
    unit: "seconds",
    help: "From an append to its acknowledgement; its count is the number of appends.",
  },
  holdpoint_log_lag: {
    kind: "gauge",
    unit: "",
    help: "Sequences between the end of the log, or of the subject that is followed, and the last message folded in.",
  },
} as const satisfies Readonly<Record<string, Measure>>;

/** A scrape does not wait longer than this for the broker, in milliseconds. */
const patienceMs = 1_000;

interface Following {
  readonly tail: Tail;
  readonly subjects: readonly string[] | undefined;
}

/** `log`, measured into `sink`. */
export function measuredLog(log: EventLog, sink: MetricsSink): EventLog {
  const followed = new Set<Following>();
  sink.define(processMeasures);
  sink.watch(async () => {
    const lags = await Promise.all([...followed].map((following) => lagOf(log, following)));
    const known = lags.filter((lag) => lag !== undefined);
    return known.length === 0 ? [] : [{ name: "holdpoint_log_lag", value: Math.max(...known), labels: {} }];
  });
  const timed = async (append: () => Promise<AppendResult>): Promise<AppendResult> => {
    const startMs = performance.now();
    let result = "failed";
    try {
      const done = await append();
      result = done.stored ? "stored" : "refused";
      return done;
    } finally {
      sink.add([secondsSince(startMs, result)]);
    }
  };
  return {
    stream: log.stream,
    append: (draft, signal) => timed(() => log.append(draft, signal)),
    appendBatch: (drafts, signal) => timed(() => log.appendBatch(drafts, signal)),
    lastOn: (subject) => log.lastOn(subject),
    get: (sequence) => log.get(sequence),
    lastSequence: () => log.lastSequence(),
    read: (options, deliver) => log.read(options, deliver),
    tail: async (options, deliver) => {
      const tail = await log.tail(options, deliver);
      follow(followed, tail, options);
      return tail;
    },
  };
}

function secondsSince(startMs: number, result: string): Measurement {
  return { name: "holdpoint_append_seconds", value: (performance.now() - startMs) / 1000, labels: { result } };
}

function follow(followed: Set<Following>, tail: Tail, { subjects }: TailOptions): void {
  const following = { tail, subjects };
  const over = () => void followed.delete(following);
  followed.add(following);
  tail.ended.then(over, over);
}

/** Known where it follows everything, or one exact subject; not while the broker is away. */
async function lagOf(log: EventLog, { tail, subjects }: Following): Promise<number | undefined> {
  const late = pause(patienceMs, undefined, { ref: false });
  const end = await Promise.race([late, endOf(log, subjects).catch(() => undefined)]);
  return end === undefined ? undefined : Math.max(0, end - tail.last);
}

async function endOf(log: EventLog, subjects: readonly string[] | undefined): Promise<number | undefined> {
  if (subjects === undefined) return log.lastSequence();
  const [subject = "", ...more] = subjects;
  if (more.length > 0 || /[*>]/.test(subject)) return undefined;
  return (await log.lastOn(subject))?.sequence ?? 0;
}
