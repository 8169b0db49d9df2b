/** The words of what is observed: spans and measurements as plain data, before anybody exports them. */
import type { RemoteSpan } from "./traceparent.ts";

/** What a measurement is of. A counter only grows; a histogram is of durations; a gauge is looked at when it is asked for. */
export interface Measure {
  readonly kind: "histogram" | "counter" | "gauge";
  /** As Prometheus spells it; empty: a plain number. */
  readonly unit: "seconds" | "";
  readonly help: string;
}

export interface Measurement<Name extends string = string> {
  readonly name: Name;
  readonly value: number;
  readonly labels: Readonly<Record<string, string>>;
}

/** What the control plane is measured by. */
export const controlMeasures = {
  holdpoint_hold_seconds: {
    kind: "histogram",
    unit: "seconds",
    help: "From the first ask to prepare until everybody works again, by proceed or by resume.",
  },
  holdpoint_durability_lag_seconds: {
    kind: "histogram",
    unit: "seconds",
    help: "From captured to restorable.",
  },
  holdpoint_operation_seconds: {
    kind: "histogram",
    unit: "seconds",
    help: "From the arrival of a command in the stream to its outcome.",
  },
  holdpoint_ask_seconds: {
    kind: "histogram",
    unit: "seconds",
    help: "From an ask to the answer of one process.",
  },
  holdpoint_fences_total: {
    kind: "counter",
    unit: "",
    help: "Incarnations fenced, by a successor or by the coordinator.",
  },
  holdpoint_leader: { kind: "gauge", unit: "", help: "1 where this coordinator leads, else 0." },
  holdpoint_participants: { kind: "gauge", unit: "", help: "Processes that are expected to answer." },
  holdpoint_commands: { kind: "gauge", unit: "", help: "Commands that have no outcome yet." },
  holdpoint_open_leases: { kind: "gauge", unit: "", help: "1 while a checkpoint or restore is open, else 0." },
  holdpoint_lease_left_seconds: {
    kind: "gauge",
    unit: "seconds",
    help: "Until what is open ends by itself; absent where nothing is open.",
  },
  holdpoint_blockers: { kind: "gauge", unit: "", help: "What the open checkpoint's prepare waits for." },
  holdpoint_restarts: { kind: "gauge", unit: "", help: "Episodes that the open checkpoint cannot capture." },
  holdpoint_restorable: { kind: "gauge", unit: "", help: "Checkpoints that can be restored." },
  holdpoint_stale_ids: { kind: "gauge", unit: "", help: "Checkpoint ids that were resumed, and are refused for ever." },
  holdpoint_retired_marks: { kind: "gauge", unit: "", help: "Rollouts retired and not forgotten." },
} as const satisfies Readonly<Record<string, Measure>>;

export type ControlMeasurement = Measurement<keyof typeof controlMeasures>;

/** A span of ours by its names, from which its ids are made, or somebody else's. */
export type SpanReference = { readonly trace: string; readonly key: string } | RemoteSpan;

/** The first word of a span's name; what follows is an operation. */
export const spanKinds = ["checkpoint", "restore", "operation", "ask", "command"] as const;

/** Everything that an attribute may say: ids, counts and codes, never words that somebody wrote. */
export const spanAttributes = [
  "holdpoint.checkpoint_id",
  "holdpoint.command",
  "holdpoint.joins",
  "holdpoint.outcome",
  "holdpoint.asked",
  "holdpoint.role",
  "holdpoint.instance",
  "holdpoint.worker",
  "holdpoint.incarnation",
  "holdpoint.blockers",
  "holdpoint.restarts",
  "holdpoint.captured",
  "holdpoint.restorable",
] as const;

export interface SpanRecord {
  /** The trace within the run, and the span within the trace. The same names always give the same ids. */
  readonly self: { readonly trace: string; readonly key: string };
  readonly name: (typeof spanKinds)[number] | `${"operation" | "ask" | "command"} ${string}`;
  /** Under somebody else's span it stands in the trace of that one. */
  readonly parent: SpanReference | undefined;
  readonly links: readonly SpanReference[];
  /** Epoch milliseconds, of the stream. */
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Readonly<Partial<Record<(typeof spanAttributes)[number], string | number | boolean>>>;
  /** The code of what went wrong. */
  readonly error: string | undefined;
}

export interface Observed {
  readonly spans: readonly SpanRecord[];
  readonly measurements: readonly ControlMeasurement[];
}
