import { controlMeasures } from "@holdpoint/checkpoint";
import { publishCommand } from "@holdpoint/jetstream";
import { commandSubject } from "@holdpoint/schemas";
import { processMeasures, traceIdOf } from "@holdpoint/telemetry";
import { digest, type SimulatedSession } from "@holdpoint/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Collector, type Span } from "./collector.ts";
import { CoordinatorProcess, eventually, LiveRun } from "./live-run.ts";

const sessions: readonly SimulatedSession[] = ["r1", "r2"].map((rollout) => {
  const edge = { received: 1, last: digest(rollout) };
  return { rollout, attempt: 0, edges: { calls: edge, tools: edge } };
});
const deadline = { timeoutMs: 60_000 };
const roles = ["environment", "model", "agent", "resources"] as const;
const secret = "hunter2-of-the-collector";

let live: LiveRun;
let collector: Collector;

beforeAll(async () => {
  collector = await Collector.start();
  live = await LiveRun.start("traced");
  live.settings = {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_HEADERS: `authorization=${secret}`,
    HOLDPOINT_METRICS: "0",
  };
});

afterAll(async () => {
  await live.stop();
  collector.stop();
});

/** Once the collector has it. */
async function received(name: string, trace?: string): Promise<Span> {
  return eventually(`the span ${name}`, async () =>
    collector.named(name).find(({ traceId }) => trace === undefined || traceId === trace),
  );
}

/** The spans of the asks under `operation`, by the role that was asked. */
function asksUnder(operation: Span, name: string): readonly string[] {
  const asks = collector.named(name).filter(({ parentSpanId }) => parentSpanId === operation.spanId);
  return asks.map(({ attributes }) => String(attributes["holdpoint.role"])).toSorted();
}

/** The outcome of an operation on the third checkpoint. */
async function obeyed(operation: "prepare" | "commit" | "resume") {
  return live.outcome(await live.command(operation, { checkpointId: "c3", ...deadline }));
}

/** The samples of a scrape, by name and labels. */
async function scrape({ output }: CoordinatorProcess): Promise<ReadonlyMap<string, number>> {
  const url = /"url":"(http:[^"]+)"/.exec(output)?.[1] ?? "";
  const text = await (await fetch(url)).text();
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.split(" ").at(-1))]));
}

/** The sum of the samples of that name whose labels have `label`. */
function sample(samples: ReadonlyMap<string, number>, name: string, label = ""): number | undefined {
  const found = [...samples].filter(([key]) => key.startsWith(`${name}{`) && key.includes(label));
  return found.length === 0 ? undefined : found.reduce((sum, [, value]) => sum + value, 0);
}

describe("a checkpoint with its release, on a real broker", () => {
  test("is one trace in the collector, with a span of each operation and of each process that was asked", async () => {
    await live.coordinator();
    for (const role of roles) await live.join(role, sessions);
    await live.request("checkpoint", { checkpointId: "c1", ...deadline });
    await live.request("release", { checkpointId: "c1", kept: ["c1"], ...deadline });
    const trace = traceIdOf(live.run, "c1");
    const release = await received("operation release", trace);
    const [whole, checkpoint] = [await received("checkpoint", trace), await received("operation checkpoint", trace)];
    expect(whole.parentSpanId).toBeUndefined();
    expect([checkpoint.parentSpanId, release.parentSpanId]).toEqual([whole.spanId, whole.spanId]);
    for (const operation of ["prepare", "capture", "proceed", "commit", "resume"]) {
      expect(asksUnder(checkpoint, `ask ${operation}`)).toEqual(roles.toSorted());
    }
    expect(asksUnder(release, "ask release")).toEqual(roles.toSorted());
    expect(new Set([...collector.spans.values()].map(({ traceId }) => traceId))).toEqual(new Set([trace]));
    expect([...collector.resources.values()]).toMatchObject([
      { "service.name": "holdpoint-coordinator", "holdpoint.run": live.run },
    ]);
  });

  test("is measured, and scraped", async () => {
    const leader = await live.leader();
    const samples = await scrape(leader);
    expect(sample(samples, "holdpoint_hold_seconds_count")).toBe(1);
    expect(sample(samples, "holdpoint_hold_seconds_sum")).toBeGreaterThan(0);
    expect(sample(samples, "holdpoint_durability_lag_seconds_count")).toBe(1);
    expect(sample(samples, "holdpoint_ask_seconds_count", 'operation="prepare"')).toBe(4);
    expect(sample(samples, "holdpoint_operation_seconds_count", 'operation="release"')).toBe(1);
    expect(sample(samples, "holdpoint_append_seconds_count", 'result="stored"')).toBeGreaterThan(10);
    expect(sample(samples, "holdpoint_participants")).toBe(4);
    expect(sample(samples, "holdpoint_leader", `run="${live.run}"`)).toBe(1);
    expect(sample(samples, "holdpoint_stale_ids")).toBe(1);
    expect(sample(samples, "holdpoint_log_lag")).toBe(0);
    const known = [...Object.entries(controlMeasures), ...Object.entries(processMeasures)];
    const names = known.map(([name, { kind }]) => (kind === "histogram" ? `${name}_bucket` : name));
    const scraped = new Set([...samples.keys()].map((key) => key.split("{")[0] ?? ""));
    const others = [...scraped].filter((name) => !names.includes(name) && !/_(sum|count)$/.test(name));
    expect(others).toEqual([]);
  });

  test("its lines in the coordinator's own log name run, checkpoint, commands and trace", async () => {
    const { output } = await live.leader();
    const line = output.split("\n").find((each) => each.includes("checkpoint.captured"));
    expect(line).toContain(`"run":"${live.run}"`);
    expect(line).toContain('"checkpointId":"c1"');
    expect(line).toMatch(/"commands":\[\d+\]/);
    expect(line).toContain(`"traceId":"${traceIdOf(live.run, "c1")}"`);
  });

  test("is found from the controller's own span, and leads back to it", async () => {
    const [traceId, spanId] = ["0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"];
    const draft = {
      subject: commandSubject(live.run, "checkpoint"),
      body: JSON.stringify({ checkpointId: "c2", ...deadline }),
      messageId: "traced",
      traceparent: `00-${traceId}-${spanId}-01`,
    };
    await publishCommand(await live.operator(), live.run, draft);
    const theirs = await received("command checkpoint", traceId);
    const ours = await received("operation checkpoint", traceIdOf(live.run, "c2"));
    expect(theirs.parentSpanId).toBe(spanId);
    expect(theirs.links).toMatchObject([{ traceId: ours.traceId, spanId: ours.spanId }]);
    expect(ours.links).toMatchObject([{ traceId, spanId }]);
  });

  test("misses no span where the coordinator is killed in its middle, and an ask is answered meanwhile", async () => {
    const late = live.participants.find(({ options }) => options.role === "resources");
    if (late === undefined) throw new Error("no resources");
    late.behaviour.capture = () => undefined;
    expect(await obeyed("prepare")).toMatchObject({ ok: true });
    const capture = await live.command("capture", { checkpointId: "c3", ...deadline });
    await eventually("everybody is asked to capture", async () => {
      const asks = (await live.control()).filter(({ type }) => type === "participants.asked");
      return asks.some(({ data }) => "operation" in data && data.operation === "capture" && data.command === capture)
        ? true
        : undefined;
    });
    await (await live.leader()).kill();
    late.behaviour = {};
    await eventually("the answer of who was late", async () => ((await late.obey()) ? true : undefined));
    await live.coordinator();
    expect(await live.outcome(capture)).toMatchObject({ ok: true });
    expect(await obeyed("commit")).toMatchObject({ ok: true });
    expect(await obeyed("resume")).toMatchObject({ ok: true });
    const trace = traceIdOf(live.run, "c3");
    await received("checkpoint", trace);
    for (const operation of ["prepare", "capture", "commit", "resume"]) {
      expect(asksUnder(await received(`operation ${operation}`, trace), `ask ${operation}`)).toEqual(roles.toSorted());
    }
  });

  test("says no secret to the collector", async () => {
    const { password } = live.broker.credentialsOf("coordinator");
    expect(collector.received).toContain("/v1/traces");
    expect(collector.received).not.toContain(secret);
    expect(collector.received).not.toContain(password);
  });
});

test("wrong settings of metrics and spans end it with code 2, all of them named", async () => {
  const env = { PATH: process.env["PATH"] ?? "" };
  const wrong = new CoordinatorProcess({
    ...env,
    HOLDPOINT_METRICS: "localhost:http",
    OTEL_EXPORTER_OTLP_ENDPOINT: "x",
  });
  expect(await wrong.ended()).toBe(2);
  for (const name of ["HOLDPOINT_METRICS", "OTEL_EXPORTER_OTLP_ENDPOINT"]) expect(wrong.output).toContain(name);
});

test("an address that is taken ends it with code 2", async () => {
  const taken = new URL(collector.url).host;
  const wrong = new CoordinatorProcess({ PATH: process.env["PATH"] ?? "", HOLDPOINT_METRICS: taken });
  expect(await wrong.ended()).toBe(2);
  expect(wrong.output).toContain(`HOLDPOINT_METRICS: ${taken} cannot be served`);
});
