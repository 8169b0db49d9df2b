/**
 * What the coordinator tells of the control plane, where it is asked to: spans to a collector, measurements to Prometheus.
 *
 * Whoever leads tells. The spans that ended about when the leader before it was lost, or since, a new one tells again: they have the
 * same ids, so that a collector knows them, and none is missing for a crash.
 */
import { controlMeasures, type CoordinatorState, gaugesOf, observe, type SpanRecord } from "@holdpoint/checkpoint";
import type { StoredMessage } from "@holdpoint/eventsourcing";
import type { RunConnections } from "@holdpoint/participant";
import { controlSubject } from "@holdpoint/schemas";
import { exportSpans, type MetricsSink, type SpanSink } from "@holdpoint/telemetry";
import type { Settings } from "./settings.ts";

/** What a leader may have had no time to export when it was lost, in milliseconds: more than a sink's delay. */
const unexportedMs = 3_000;

export interface Telemetry {
  /** To be told of every message before it is folded into `state`. */
  readonly observe: (state: CoordinatorState, message: StoredMessage) => void;
  /** Whose state the gauges show; `nowMs` is the stream's time. */
  watch(coordinator: { readonly state: CoordinatorState; readonly nowMs: number }): void;
  stop(): Promise<void>;
}

interface Sinks {
  readonly spans: SpanSink | undefined;
  readonly metrics: MetricsSink | undefined;
}

/** undefined: nobody wants to be told anything, and nothing is looked at. */
export async function openTelemetry(
  { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }: Settings,
  { settings: { HOLDPOINT_RUN: run }, incarnation, logger, metrics }: RunConnections,
): Promise<Telemetry | undefined> {
  if (endpoint === undefined && metrics === undefined) return undefined;
  const source = { run, service: "holdpoint-coordinator", incarnation };
  const trouble = (what: string) => logger.warn({ what }, "spans or metrics are not exported");
  const spans = endpoint === undefined ? undefined : await exportSpans(endpoint, source, trouble);
  metrics?.define(controlMeasures);
  return new Observer(incarnation, { spans, metrics });
}

class Observer implements Telemetry {
  readonly #incarnation: string;
  readonly #sinks: Sinks;
  /** Not told by this coordinator, and perhaps by none. */
  #untold: SpanRecord[] = [];
  /** When the one that leads last wrote on `control`. */
  #leaderAtMs = 0;

  constructor(incarnation: string, sinks: Sinks) {
    this.#incarnation = incarnation;
    this.#sinks = sinks;
  }

  readonly observe = (state: CoordinatorState, message: StoredMessage): void => {
    const { spans, measurements } = observe(state, message);
    const { spans: collector, metrics } = this.#sinks;
    if (this.#leads(state)) {
      collector?.add([...this.#untold, ...spans]);
      metrics?.add(measurements);
      this.#untold = [];
    } else if (collector !== undefined) {
      this.#keep(spans, message, state.run);
    }
  };

  watch(coordinator: { readonly state: CoordinatorState; readonly nowMs: number }): void {
    this.#sinks.metrics?.watch(async () => {
      const { state, nowMs } = coordinator;
      return gaugesOf(state, { nowMs, leads: this.#leads(state) });
    });
  }

  async stop(): Promise<void> {
    await this.#sinks.spans?.stop();
  }

  /** A coordinator's later terms are incarnations of their own, named after the first. */
  #leads({ leader }: CoordinatorState): boolean {
    return leader === this.#incarnation || leader?.startsWith(`${this.#incarnation}-`) === true;
  }

  /** What the leader had time to export is forgotten, one message of its later. */
  #keep(spans: readonly SpanRecord[], { subject, timeMs }: StoredMessage, run: string): void {
    this.#untold.push(...spans);
    if (subject !== controlSubject(run)) return;
    const sinceMs = this.#leaderAtMs - unexportedMs;
    this.#untold = this.#untold.filter(({ endMs }) => endMs >= sinceMs);
    this.#leaderAtMs = timeMs;
  }
}
