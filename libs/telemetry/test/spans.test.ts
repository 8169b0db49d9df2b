import type { SpanRecord } from "@holdpoint/checkpoint";
import { exportSpans, spanIdOf, traceIdOf } from "@holdpoint/telemetry";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";

const source = { run: "demo", service: "holdpoint-test", incarnation: "test-1" };
const span: SpanRecord = {
  self: { trace: "c1", key: "command 7" },
  name: "operation prepare",
  parent: { trace: "c1", key: "root" },
  links: [],
  startMs: 1_700_000_000_123.25,
  endMs: 1_700_000_001_000,
  attributes: { "holdpoint.command": 7 },
  error: "deadline_exceeded",
};

test("ids are the first bytes of SHA-256 of the names, as the page says", () => {
  expect(traceIdOf("demo", "c1")).toBe("917fb336be20464e272b158304bc2e26");
  expect(spanIdOf("demo", "c1", "root")).toMatch(/^[\da-f]{16}$/);
});

test("a span goes to the collector when it is stopped at the latest, with the ids and times that it was given", async () => {
  const bodies: string[] = [];
  const server = createServer((request, response) => {
    void (async () => {
      bodies.push(`${request.url} ${await text(request)}`);
      response.end("{}");
    })();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const sink = await exportSpans(`http://127.0.0.1:${port}/prefix/`, source, () => {});
  sink.add([span]);
  await sink.stop();
  server.close();
  expect(bodies).toHaveLength(1);
  expect(bodies[0]).toMatch(/^\/prefix\/v1\/traces /);
  for (const part of [
    `"traceId":"${traceIdOf("demo", "c1")}"`,
    `"spanId":"${spanIdOf("demo", "c1", "command 7")}"`,
    `"parentSpanId":"${spanIdOf("demo", "c1", "root")}"`,
    '"startTimeUnixNano":"1700000000123250000"',
    '"endTimeUnixNano":"1700000001000000000"',
    '"message":"deadline_exceeded"',
  ]) {
    expect(bodies[0]).toContain(part);
  }
});

test("a collector that is away is trouble, and nothing more", async () => {
  const troubles: string[] = [];
  const sink = await exportSpans("http://127.0.0.1:9", source, (what) => troubles.push(what));
  sink.add([span]);
  await sink.stop();
  expect(troubles.join()).toContain("ECONNREFUSED");
});

test("nothing of OpenTelemetry is loaded before a sink is opened", () => {
  const program = `
    import { registerHooks } from "node:module";
    const loaded = [];
    const resolve = (specifier, context, next) => {
      const found = next(specifier, context);
      loaded.push(found.url);
      return found;
    };
    registerHooks({ resolve });
    const { serveMetrics } = await import("@holdpoint/telemetry");
    const count = () => loaded.filter((url) => url.includes("@opentelemetry")).length;
    const before = count();
    await serveMetrics({ host: "127.0.0.1", port: 0 }, ${JSON.stringify(source)});
    console.log(JSON.stringify([loaded.length > 0, before, count() > 0]));`;
  const options = { cwd: import.meta.dirname, encoding: "utf8" as const };
  const output = execFileSync(process.execPath, ["--input-type=module", "--eval", program], options);
  expect(JSON.parse(output)).toEqual([true, 0, true]);
});
