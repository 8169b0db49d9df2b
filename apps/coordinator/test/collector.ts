/** A collector of OpenTelemetry in the test: takes spans by OTLP over HTTP, as JSON. */
import { parseJson } from "@holdpoint/eventsourcing";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import * as z from "zod";

const Value = z.union([
  z.object({ stringValue: z.string() }).transform(({ stringValue }) => stringValue),
  z.object({ intValue: z.coerce.number() }).transform(({ intValue }) => intValue),
  z.object({ doubleValue: z.number() }).transform(({ doubleValue }) => doubleValue),
  z.object({ boolValue: z.boolean() }).transform(({ boolValue }) => boolValue),
]);
const Attributes = z
  .array(z.object({ key: z.string(), value: Value }))
  .transform((list) => Object.fromEntries(list.map(({ key, value }) => [key, value])));

const Span = z.object({
  traceId: z.string(),
  spanId: z.string(),
  parentSpanId: z.string().optional(),
  name: z.string(),
  startTimeUnixNano: z.coerce.bigint(),
  endTimeUnixNano: z.coerce.bigint(),
  attributes: Attributes,
  links: z.array(z.object({ traceId: z.string(), spanId: z.string() })).default([]),
  status: z.object({ code: z.number().optional(), message: z.string().optional() }),
});
export type Span = z.infer<typeof Span>;

const Export = z.object({
  resourceSpans: z.array(
    z.object({
      resource: z.object({ attributes: Attributes }),
      scopeSpans: z.array(z.object({ spans: z.array(Span) })),
    }),
  ),
});

export class Collector {
  readonly #server: Server;
  /** By its id: the same span told twice is one. */
  readonly spans = new Map<string, Span>();
  readonly resources = new Map<string, unknown>();
  /** Everything that was received, as it was. */
  received = "";

  private constructor() {
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  static async start(): Promise<Collector> {
    const collector = new Collector();
    collector.#server.listen(0, "127.0.0.1");
    await once(collector.#server, "listening");
    return collector;
  }

  get url(): string {
    const address = this.#server.address();
    return `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`;
  }

  named(name: string): Span[] {
    return [...this.spans.values()].filter((span) => span.name === name);
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.#take(request.url ?? "", await buffer(request));
    response.writeHead(200, { "content-type": "application/json" }).end("{}");
  }

  #take(url: string, body: Buffer): void {
    this.received += `${url} ${body.toString()}\n`;
    const json = parseJson(body);
    for (const { resource, scopeSpans } of Export.parse(json.ok ? json.value : undefined).resourceSpans) {
      this.resources.set(JSON.stringify(resource.attributes), resource.attributes);
      for (const span of scopeSpans.flatMap(({ spans }) => spans))
        this.spans.set(`${span.traceId}/${span.spanId}`, span);
    }
  }
}
