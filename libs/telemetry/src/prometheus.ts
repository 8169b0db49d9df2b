/** Measurements, as they are made, for Prometheus to scrape. Loaded only where that is wanted. */
import type { Measure, Measurement } from "@holdpoint/checkpoint";
import { HoldpointError } from "@holdpoint/errors";
import type { Meter, ObservableGauge } from "@opentelemetry/api";
import { PrometheusExporter } from "@opentelemetry/exporter-prometheus";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { MeterProvider } from "@opentelemetry/sdk-metrics";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { Measures, MetricsAddress, MetricsSink, Source } from "./sinks.ts";

/** Seconds: an append takes milliseconds, a hold some seconds, what waits for blockers minutes. */
const buckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];

/**
 * Serves metrics until the process ends, which it does not keep alive.
 *
 * @throws HoldpointError `invalid_request` where the address cannot be served
 */
export async function openMetricsSink(address: MetricsAddress, { run, service }: Source): Promise<MetricsSink> {
  const exporter = new PrometheusExporter({
    preventServerStart: true,
    withoutScopeInfo: true,
    withoutTargetInfo: true,
    withResourceConstantLabels: /./,
  });
  const provider = new MeterProvider({ resource: resourceFromAttributes({ run, service }), readers: [exporter] });
  const server = createServer((request, response) => {
    if (request.url?.split("?")[0] === "/metrics") return exporter.getMetricsRequestHandler(request, response);
    response.writeHead(404).end("metrics are at /metrics\n");
  });
  const url = await listening(server.unref(), address);
  return new Sink(url, provider.getMeter("holdpoint"));
}

class Sink implements MetricsSink {
  readonly url: string;
  readonly #meter: Meter;
  readonly #gauges = new Map<string, ObservableGauge>();
  readonly #adders = new Map<string, (value: number, labels: Measurement["labels"]) => void>();

  constructor(url: string, meter: Meter) {
    this.url = url;
    this.#meter = meter;
  }

  define(measures: Measures): void {
    for (const [name, measure] of Object.entries(measures)) this.#define(name, measure);
  }

  add(measurements: readonly Measurement[]): void {
    for (const { name, value, labels } of measurements) this.#adders.get(name)?.(value, labels);
  }

  watch(look: () => Promise<readonly Measurement[]>): void {
    const gauges = [...this.#gauges.values()];
    this.#meter.addBatchObservableCallback(async (result) => {
      for (const { name, value, labels } of await look()) {
        const gauge = this.#gauges.get(name);
        if (gauge !== undefined) result.observe(gauge, value, labels);
      }
    }, gauges);
  }

  #define(name: string, { kind, unit, help: description }: Measure): void {
    const options = { description, unit };
    switch (kind) {
      case "gauge":
        this.#gauges.set(name, this.#meter.createObservableGauge(name, options));
        return;
      case "counter": {
        const counter = this.#meter.createCounter(name, options);
        this.#adders.set(name, (value, labels) => counter.add(value, labels));
        return;
      }
      case "histogram": {
        const advice = { explicitBucketBoundaries: buckets };
        const histogram = this.#meter.createHistogram(name, { ...options, advice });
        this.#adders.set(name, (value, labels) => histogram.record(Math.max(0, value), labels));
        return;
      }
    }
  }
}

async function listening(server: Server, { host, port }: MetricsAddress): Promise<string> {
  try {
    server.listen(port, host);
    await once(server, "listening");
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    const words = `HOLDPOINT_METRICS: ${host}:${port} cannot be served (${why}); name another port, or 0 for a free one`;
    throw new HoldpointError("invalid_request", words, { cause });
  }
  const bound = server.address();
  const open = typeof bound === "object" && bound !== null ? bound.port : port;
  return `http://${host.includes(":") ? `[${host}]` : host}:${open}/metrics`;
}
