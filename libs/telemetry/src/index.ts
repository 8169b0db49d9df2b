/** What our processes tell whoever runs them. */
export { createLogger, type Logger, runLogger } from "./logger.ts";
export { measuredLog, processMeasures } from "./measured-log.ts";
export {
  exportSpans,
  type MetricsAddress,
  type MetricsSink,
  serveMetrics,
  type Source,
  type SpanSink,
} from "./sinks.ts";
export { spanIdOf, traceIdOf } from "./trace-ids.ts";
