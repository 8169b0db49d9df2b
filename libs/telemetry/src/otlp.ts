/** Spans, as they are recorded, to an OpenTelemetry collector. Loaded only where that is wanted. */
import type { SpanRecord, SpanReference } from "@holdpoint/checkpoint";
import {
  diag,
  DiagLogLevel,
  type HrTime,
  type Link,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
} from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { type Resource, resourceFromAttributes } from "@opentelemetry/resources";
import { BatchSpanProcessor, type ReadableSpan } from "@opentelemetry/sdk-trace";
import { spanIdOf, traceIdOf } from "./trace-ids.ts";
import type { Source, SpanSink } from "./sinks.ts";

/** A process that is killed loses no more spans than those of this time, in milliseconds. */
const delayMs = 1_000;
/** How long one export may take, in milliseconds: as long as a stop may have to wait. */
const exportTimeoutMs = 3_000;
/** Ours are all sampled. */
const sampled = 1;

const quiet = () => {};

const nothingDropped = { droppedAttributesCount: 0, droppedEventsCount: 0, droppedLinksCount: 0 };

/**
 * Exports spans to `endpoint`, at `/v1/traces` there.
 *
 * The environment may say more, as for every exporter of OpenTelemetry, such as `OTEL_EXPORTER_OTLP_HEADERS`.
 *
 * @param trouble told what keeps spans from being exported; they are dropped then
 */
export function openSpanSink(endpoint: string, source: Source, trouble: (what: string) => void): SpanSink {
  const complain = (what: string) => trouble(what.slice(0, 500));
  diag.setLogger(
    { error: complain, warn: complain, info: quiet, debug: quiet, verbose: quiet },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  const url = `${endpoint.replace(/\/+$/, "")}/v1/traces`;
  const exporter = new OTLPTraceExporter({ url, timeoutMillis: exportTimeoutMs });
  const processor = new BatchSpanProcessor({
    exporter,
    scheduledDelayMillis: delayMs,
    exportTimeoutMillis: exportTimeoutMs,
  });
  const resource = resourceFromAttributes({
    "service.name": source.service,
    "service.instance.id": source.incarnation,
    "holdpoint.run": source.run,
  });
  return {
    add: (spans) => {
      for (const span of spans) processor.onEnd(readable(span, source.run, resource));
    },
    stop: async () => {
      await processor.shutdown().catch((error: unknown) => complain(String(error)));
    },
  };
}

function readable(span: SpanRecord, run: string, resource: Resource): ReadableSpan {
  const { self, parent, links, name, startMs, endMs, attributes, error } = span;
  const above = parent === undefined ? undefined : contextOf(parent, run);
  const own = contextOf(self, run);
  const context = { ...own, traceId: above?.traceId ?? own.traceId };
  return {
    name,
    kind: SpanKind.INTERNAL,
    spanContext: () => context,
    ...(above !== undefined && { parentSpanContext: above }),
    startTime: hrTime(startMs),
    endTime: hrTime(endMs),
    duration: hrTime(Math.max(0, endMs - startMs)),
    status: error === undefined ? { code: SpanStatusCode.UNSET } : { code: SpanStatusCode.ERROR, message: error },
    attributes,
    links: links.map((other): Link => ({ context: contextOf(other, run) })),
    events: [],
    ended: true,
    resource,
    instrumentationScope: { name: "holdpoint" },
    ...nothingDropped,
  };
}

function contextOf(reference: SpanReference, run: string): SpanContext {
  if ("traceId" in reference) return { ...reference, traceFlags: sampled, isRemote: true };
  const { trace, key } = reference;
  return { traceId: traceIdOf(run, trace), spanId: spanIdOf(run, trace, key), traceFlags: sampled };
}

/** Seconds and nanoseconds. */
function hrTime(ms: number): HrTime {
  const seconds = Math.floor(ms / 1000);
  return [seconds, Math.round((ms - seconds * 1000) * 1e6)];
}
