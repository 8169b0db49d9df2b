import {
  advance,
  type ControlMeasurement,
  controlMeasures,
  gaugesOf,
  initialState,
  observe,
  spanAttributes,
  spanKinds,
  type SpanRecord,
} from "@holdpoint/checkpoint";
import { describe, expect, test } from "vitest";
import { member, run, type Simulation, startedRun } from "./simulation.ts";

const c1 = { checkpointId: "c1" };
const sender = { traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331" };
const traceparent = `00-${sender.traceId}-${sender.spanId}-01`;

interface Seen {
  readonly spans: readonly SpanRecord[];
  readonly measurements: readonly ControlMeasurement[];
}

/** What an observer makes of the whole log; `sent` are the commands that came with `header`. */
async function seenOf({ log }: Simulation, sent: readonly number[] = [], header = traceparent): Promise<Seen> {
  const spans: SpanRecord[] = [];
  const measurements: ControlMeasurement[] = [];
  let state = initialState(run, log.stream);
  await log.read({ upTo: await log.lastSequence() }, (stored) => {
    const message = sent.includes(stored.sequence) ? { ...stored, traceparent: header } : stored;
    const seen = observe(state, message);
    spans.push(...seen.spans);
    measurements.push(...seen.measurements);
    state = advance(state, message);
  });
  return { spans, measurements };
}

function named(spans: readonly SpanRecord[], name: string): SpanRecord {
  const [span, ...more] = spans.filter((each) => each.name === name);
  if (span === undefined || more.length > 0) throw new Error(`${more.length} more than one ${name}, or none`);
  return span;
}

function values({ measurements }: Seen, name: ControlMeasurement["name"]): readonly number[] {
  return measurements.filter((each) => each.name === name).map(({ value }) => value);
}

/** Every ask takes each process so many milliseconds. */
function slow(simulation: Simulation, ms: number): Simulation {
  for (const process of simulation.processes) {
    const ask = process.behaviour;
    for (const operation of ["proceed", "commit", "resume", "release"] as const) {
      ask[operation] = () => {
        simulation.nowMs += ms;
        return {};
      };
    }
  }
  return simulation;
}

describe("the spans of a checkpoint", () => {
  test("are one trace, whose operations stand under the checkpoint, and asks under their operation", async () => {
    const simulation = await startedRun();
    for (const operation of ["prepare", "capture", "commit", "resume"] as const) await simulation.obeyed(operation, c1);
    await simulation.obeyed("release", { ...c1, kept: [] });
    const { spans } = await seenOf(simulation);
    expect(new Set(spans.map(({ self }) => self.trace))).toEqual(new Set(["c1"]));
    const top = named(spans, "checkpoint");
    expect(top.parent).toBeUndefined();
    for (const operation of ["prepare", "capture", "commit", "resume", "release"]) {
      const own = named(spans, `operation ${operation}`);
      expect(own.parent).toEqual(top.self);
      const asks = spans.filter(({ name }) => name === `ask ${operation}`);
      expect(asks.map(({ attributes }) => String(attributes["holdpoint.role"])).toSorted()).toEqual([
        "agent",
        "environment",
        "model",
        "resources",
      ]);
      for (const ask of asks) expect(ask.parent).toEqual(own.self);
    }
    const keys = spans.map(({ self: { key } }) => key);
    expect(new Set(keys).size).toBe(keys.length);
  });

  test("are named the same wherever the coordinator was killed", async () => {
    const whole = await startedRun();
    await whole.obeyed("checkpoint", c1);
    const expected = (await seenOf(whole)).spans.map(({ name }) => name).toSorted();
    for (let at = 1; at <= whole.appends; at++) {
      const simulation = await startedRun();
      const before = simulation.appends;
      simulation.killAfter = (appends) => appends === before + at;
      await simulation.obeyed("checkpoint", c1);
      const { spans } = await seenOf(simulation);
      expect(spans.map(({ name }) => name).toSorted()).toEqual(expected);
    }
  });

  test("tell of a process that was silent, and of what that led to, by code", async () => {
    const simulation = await startedRun();
    member(simulation, "model").behaviour.prepare = () => undefined;
    await simulation.obeyed("checkpoint", c1);
    const { spans } = await seenOf(simulation);
    const silent = spans.filter(({ name, error }) => name === "ask prepare" && error !== undefined);
    expect(silent).toMatchObject([{ error: "deadline_exceeded", attributes: { "holdpoint.role": "model" } }]);
    expect(silent[0]?.endMs).toBeGreaterThanOrEqual((silent[0]?.startMs ?? 0) + 30_000);
    expect(named(spans, "operation checkpoint").error).toBe("deadline_exceeded");
    expect(named(spans, "checkpoint").attributes["holdpoint.captured"]).toBe(false);
  });

  test("say ids, counts and codes, never what somebody wrote", async () => {
    const simulation = await startedRun();
    const secret = "password=hunter2";
    const blockers = [{ rollout: "r1", attempt: 0, reason: secret, sinceMs: 1 }];
    member(simulation, "agent").behaviour.prepare = () => ({ blockers });
    await simulation.obeyed("prepare", c1);
    member(simulation, "agent").behaviour.prepare = () => ({ problem: { code: "unavailable", message: secret } });
    await simulation.obeyed("prepare", c1);
    await simulation.command("resume", `{"checkpointId":"c1","timeoutMs":1,"${secret}":1}`);
    await simulation.runOut();
    const seen = await seenOf(simulation);
    expect(JSON.stringify(seen)).not.toContain("hunter2");
    for (const { attributes, name } of seen.spans) {
      expect(Object.keys(attributes).filter((key) => !spanAttributes.some((known) => known === key))).toEqual([]);
      expect(spanKinds).toContain(name.split(" ")[0]);
    }
  });

  test("of a restore lead to those of its checkpoint", async () => {
    const simulation = await startedRun();
    await simulation.obeyed("checkpoint", c1);
    await simulation.obeyed("retire", {
      rollouts: [
        { rollout: "r1", attempt: 0 },
        { rollout: "r2", attempt: 0 },
      ],
    });
    await simulation.obeyed("restore", { checkpointId: "x1", source: "c1" });
    await simulation.obeyed("resume", { checkpointId: "x1" });
    const { spans } = await seenOf(simulation);
    expect(named(spans, "restore").links).toEqual([named(spans, "checkpoint").self]);
    expect(named(spans, "operation restore").parent).toEqual(named(spans, "restore").self);
    const retire = named(spans, "operation retire");
    expect(retire.self.trace).toMatch(/^command \d+$/);
    expect(retire.parent).toBeUndefined();
  });

  test("are found from the span of whoever sent the command, and lead back to it", async () => {
    const simulation = await startedRun();
    const prepare = await simulation.command("prepare", { ...c1, timeoutMs: 30_000 });
    await simulation.runOut();
    const refused = await simulation.command("commit", { checkpointId: "c2", timeoutMs: 30_000 });
    await simulation.runOut();
    const { spans } = await seenOf(simulation, [prepare, refused]);
    for (const operation of ["prepare", "commit"]) {
      const own = named(spans, `operation ${operation}`);
      const theirs = named(spans, `command ${operation}`);
      expect(theirs).toMatchObject({ parent: sender, links: [own.self], startMs: own.startMs, endMs: own.endMs });
      expect(own.links).toEqual([sender]);
    }
  });

  test.each([
    "",
    "x",
    traceparent.toUpperCase().replace("0AF", "0AG"),
    `ff${traceparent.slice(2)}`,
    `${traceparent}-more`,
    `00-${"0".repeat(32)}-${sender.spanId}-01`,
    `00-${sender.traceId}-${"0".repeat(16)}-01`,
  ])("do not care for a malformed traceparent: %s", async (header) => {
    const simulation = await startedRun();
    const command = await simulation.command("prepare", { ...c1, timeoutMs: 30_000 });
    await simulation.runOut();
    const { spans } = await seenOf(simulation, [command], header);
    expect(spans.filter(({ name, links }) => name.startsWith("command") || links.length > 0)).toEqual([]);
  });

  test("leave out who only asks how things stand", async () => {
    const simulation = await startedRun();
    await simulation.obeyed("status", {});
    const { spans, measurements } = await seenOf(simulation);
    expect(spans).toEqual([]);
    expect(measurements).toEqual([
      { name: "holdpoint_operation_seconds", value: 0, labels: { operation: "status", outcome: "ok" } },
    ]);
  });
});

describe("what is measured", () => {
  test("a hold ends when work goes on, the durability lag when the checkpoint is restorable", async () => {
    const simulation = slow(await startedRun(), 100);
    await simulation.obeyed("checkpoint", c1);
    const seen = await seenOf(simulation);
    expect(values(seen, "holdpoint_hold_seconds")).toEqual([0.4]);
    expect(values(seen, "holdpoint_durability_lag_seconds")).toEqual([0.8]);
    expect(values(seen, "holdpoint_operation_seconds")).toEqual([1.2]);
  });

  test("a hold that nothing proceeds ends with the resume", async () => {
    const simulation = slow(await startedRun(), 100);
    await simulation.obeyed("prepare", c1);
    simulation.nowMs += 5_000;
    await simulation.obeyed("resume", c1);
    await simulation.obeyed("resume", c1);
    expect(values(await seenOf(simulation), "holdpoint_hold_seconds")).toEqual([5.4]);
  });

  test("a successor fences who it follows, and who had said goodbye needs no fence", async () => {
    const simulation = await startedRun();
    await member(simulation, "agent").start();
    await simulation.settle();
    await member(simulation, "resources").leave();
    await simulation.settle();
    await member(simulation, "resources").start();
    await simulation.settle();
    const fences = (await seenOf(simulation)).measurements.filter(({ name }) => name === "holdpoint_fences_total");
    expect(fences).toEqual([{ name: "holdpoint_fences_total", value: 1, labels: { role: "agent", by: "successor" } }]);
  });

  test("gauges tell of leases, blockers, restarts, stale ids and marks", async () => {
    const simulation = await startedRun();
    const gauges = () => {
      const all = gaugesOf(simulation.state, { nowMs: simulation.nowMs, leads: true });
      return Object.fromEntries(
        all.filter(({ labels }) => !("role" in labels)).map(({ name, value }) => [name, value]),
      );
    };
    await simulation.obeyed("checkpoint", c1);
    expect(gauges()).toMatchObject({ holdpoint_open_leases: 0, holdpoint_restorable: 1, holdpoint_stale_ids: 1 });
    expect(gauges()).not.toHaveProperty("holdpoint_lease_left_seconds");
    const blockers = [{ rollout: "r1", attempt: 0, reason: "streams", sinceMs: 1 }];
    member(simulation, "agent").behaviour.prepare = () => ({ blockers, blockerCount: 7 });
    await simulation.obeyed("prepare", { checkpointId: "c2" });
    const open = { holdpoint_open_leases: 1, holdpoint_blockers: 7, holdpoint_lease_left_seconds: 630 };
    expect(gauges()).toMatchObject(open);
    member(simulation, "agent").behaviour = {};
    member(simulation, "agent").restarts = [{ rollout: "r2", attempt: 0 }];
    await simulation.obeyed("prepare", { checkpointId: "c2" });
    expect(gauges()).toMatchObject({ holdpoint_blockers: 0, holdpoint_restarts: 1 });
    await simulation.obeyed("resume", { checkpointId: "c2" });
    await simulation.obeyed("retire", { rollouts: [{ rollout: "r1", attempt: 0 }] });
    expect(gauges()).toMatchObject({ holdpoint_stale_ids: 2, holdpoint_retired_marks: 1, holdpoint_leader: 1 });
    const known = Object.entries(controlMeasures).flatMap(([name, { kind }]) => (kind === "gauge" ? [name] : []));
    const all = gaugesOf(simulation.state, { nowMs: 0, leads: false }).map(({ name }) => name);
    expect(new Set([...all, "holdpoint_lease_left_seconds"])).toEqual(new Set(known));
  });
});
