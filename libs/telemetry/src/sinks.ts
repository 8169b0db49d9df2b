/** Where what is observed goes. What stands behind each is loaded when the first is opened: who exports nothing pays for nothing. */
import type { Measure, Measurement, SpanRecord } from "@holdpoint/checkpoint";

/** Who exports. */
export interface Source {
  readonly run: string;
  readonly service: string;
  readonly incarnation: string;
}

export interface SpanSink {
  add(spans: readonly SpanRecord[]): void;
  /** Exports what is left, within some seconds; never fails. */
  stop(): Promise<void>;
}

/** Where metrics are served. */
export interface MetricsAddress {
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
}

export type Measures = Readonly<Record<string, Measure>>;

export interface MetricsSink {
  /** Where it can be scraped. */
  readonly url: string;
  /** Makes measures known; of one that is not known nothing is exported. */
  define(measures: Measures): void;
  /** Counters and histograms. */
  add(measurements: readonly Measurement[]): void;
  /** Gauges, looked at for each scrape. */
  watch(look: () => Promise<readonly Measurement[]>): void;
}

/** @throws as `openSpanSink` of the module that it loads */
export async function exportSpans(
  endpoint: string,
  source: Source,
  trouble: (what: string) => void,
): Promise<SpanSink> {
  const { openSpanSink } = await import("./otlp.ts");
  return openSpanSink(endpoint, source, trouble);
}

/** @throws HoldpointError `invalid_request` where the address cannot be served */
export async function serveMetrics(address: MetricsAddress, source: Source): Promise<MetricsSink> {
  const { openMetricsSink } = await import("./prometheus.ts");
  return openMetricsSink(address, source);
}
