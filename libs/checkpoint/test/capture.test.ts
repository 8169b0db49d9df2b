import { graceMs } from "@holdpoint/checkpoint";
import { controlSubject, outcomeSubject } from "@holdpoint/schemas";
import { describe, expect, test } from "vitest";
import { digest } from "@holdpoint/testing";
import { expectFailure, expectSuccess, member, run, type Simulation, startedRun } from "./simulation.ts";

const c1 = { checkpointId: "c1" };
const r1 = { rollout: "r1", attempt: 0 };
const r2 = { rollout: "r2", attempt: 0 };

async function preparedRun(): Promise<Simulation> {
  const simulation = await startedRun();
  expectSuccess(await simulation.obeyed("prepare", c1));
  return simulation;
}

/** What the asks of one operation told the participants. */
async function asks(simulation: Simulation, operation: string) {
  return (await simulation.control()).flatMap(({ event, sequence }) =>
    event.type === "participants.asked" && event.data.operation === operation ? [{ sequence, ...event.data }] : [],
  );
}

describe("[L4] the cut", () => {
  test("is one batch: the leader's fence, a guard for each process at its answer, the cut", async () => {
    const simulation = await preparedRun();
    const expectations: unknown[] = [];
    simulation.beforeAppend = async ({ messages }) => {
      if (messages.length < 3) return;
      expectations.push(...messages.map((message) => ("expects" in message ? message.expects : message.to)));
    };
    const before = await simulation.log.lastSequence();
    const outcome = await simulation.obeyed("capture", c1);
    const result = expectSuccess(outcome);
    const [ask] = await asks(simulation, "capture");
    const ends = simulation.processes.map(({ subject, end }) => ({ subject, sequence: end }));
    expect(expectations).toEqual([
      { subject: controlSubject(run), sequence: ask?.sequence },
      ...ends,
      { subject: outcomeSubject(run, outcome.command), sequence: 0 },
      "outcome",
    ]);
    expect(ask).toMatchObject({
      scope: [r1, r2],
      checkpointId: "c1",
      roles: ["environment", "model", "agent", "resources"],
    });
    expect(result).toEqual({
      phase: "captured",
      checkpointId: "c1",
      capturedAtMs: 1_000_000,
      continued: [r1, r2],
      holdings: simulation.processes.map(({ options, subject, end }) => ({
        role: options.role,
        instance: options.instance,
        worker: options.worker,
        digest: digest(`held by ${subject}`),
        sessions: 2,
        capturedSequence: end,
      })),
    });
    const guards = (await simulation.control()).filter(({ event }) => event.type === "cut.guarded");
    expect(guards.map(({ event }) => event.data)).toEqual(
      [{ subject: controlSubject(run), sequence: ask?.sequence }, ...ends].map((end) => ({
        checkpointId: "c1",
        ...end,
      })),
    );
    const cut = (await simulation.control()).find(({ event }) => event.type === "checkpoint.captured");
    expect(cut?.event.data).toEqual({
      command: outcome.command,
      checkpointId: "c1",
      stream: "HP_demo",
      scope: [r1, r2],
      holdings: result.holdings,
    });
    expect(guards.map(({ sequence }) => sequence)).toContain((cut?.sequence ?? 0) - 1);
    expect(await simulation.story(before)).toHaveLength(8);
    expect(simulation.state.phase).toBe("captured");
  });

  test("stands only if nobody has said anything since: else all are asked again", async () => {
    const simulation = await preparedRun();
    const agent = member(simulation, "agent");
    let raced = false;
    simulation.beforeAppend = async ({ messages }) => {
      if (messages.length < 3 || raced) return;
      raced = true;
      await agent.start(); // after its answer, and before the batch that guards it
    };
    const before = await simulation.log.lastSequence();
    const result = expectSuccess(await simulation.obeyed("capture", c1));
    expect(await simulation.story(before)).toEqual([
      "command.accepted",
      "capture environment+model+agent+resources",
      "participant.joined",
      "capture environment+model+agent+resources",
      ...Array.from({ length: 5 }, () => "cut.guarded"),
      "checkpoint.captured",
    ]);
    const answers = simulation.processes.map(({ end }) => end);
    expect(result.holdings?.map(({ capturedSequence }) => capturedSequence)).toEqual(answers);
  });

  test("is not even tried where a process is seen to have gone on", async () => {
    const simulation = await preparedRun();
    const model = member(simulation, "model");
    model.behaviour.capture = () => undefined;
    const command = await simulation.command("capture", { ...c1, timeoutMs: 30_000 });
    await simulation.settle();
    await member(simulation, "agent").start();
    model.behaviour = {};
    const sizes: number[] = [];
    simulation.beforeAppend = async ({ messages }) => void sizes.push(messages.length);
    await simulation.runOut();
    expectSuccess(await simulation.outcome(command));
    expect(await asks(simulation, "capture")).toHaveLength(2);
    expect(sizes).toEqual([1, 1, 7]);
  });

  test("is given up at the deadline where somebody never holds still; what was captured goes on", async () => {
    const simulation = await preparedRun();
    const agent = member(simulation, "agent");
    const original = agent.obey.bind(agent);
    agent.obey = async () => {
      const obeyed = await original();
      if (agent.obeyed.at(-1)?.operation === "capture" && agent.gate.fixed !== undefined) {
        await agent.say({ type: "session.restart_marked", data: { rollout: "r9", attempt: 0, why: "restless" } });
        simulation.nowMs += 4_000;
      }
      return obeyed;
    };
    const command = await simulation.command("capture", { ...c1, timeoutMs: 30_000 });
    await simulation.runOut();
    const outcome = await simulation.outcome(command);
    expect(expectFailure(outcome, "deadline_exceeded")).toBe(
      "c1 was not captured: agent agent1 (worker 0): it went on after it had captured, and no time was left " +
        "[deadline_exceeded]. It stays prepared: capture it again, or resume it",
    );
    expect(outcome.result?.failures).toEqual([
      expect.objectContaining({ role: "agent", instance: "agent1", worker: "0" }),
    ]);
    expect(simulation.state.phase).toBe("prepared");
    expect(simulation.processes.map(({ gate }) => gate.fixed)).toEqual([undefined, undefined, undefined, undefined]);
  });

  test("names who was silent at the deadline, and can be tried again", async () => {
    const simulation = await preparedRun();
    member(simulation, "model").behaviour.capture = () => undefined;
    const command = await simulation.command("capture", { ...c1, timeoutMs: 30_000 });
    expect(await simulation.settle()).toBe(1_030_000 + graceMs);
    await simulation.runOut();
    const outcome = await simulation.outcome(command);
    expectFailure(outcome, "deadline_exceeded");
    expect(outcome.result).toMatchObject({ phase: "prepared", checkpointId: "c1", failures: [{ role: "model" }] });
    expect((await simulation.story()).slice(-2)).toEqual(["deadline.passed", "command.failed"]);
    member(simulation, "model").behaviour = {};
    expectSuccess(await simulation.obeyed("capture", c1));
  });

  test("a participant that has lost its readiness fails it, by its own words", async () => {
    const simulation = await preparedRun();
    const problem = { code: "invalid_phase" as const, message: "readiness was lost" };
    member(simulation, "agent").behaviour.capture = () => ({ problem });
    const outcome = await simulation.obeyed("capture", c1);
    expect(expectFailure(outcome, "invalid_phase")).toContain(
      "agent agent1 (worker 0): readiness was lost [invalid_phase]",
    );
    expect(outcome.result?.failures).toEqual([{ role: "agent", instance: "agent1", worker: "0", problem }]);
  });

  test("does not wait for a process that leaves, and does not hold it", async () => {
    const simulation = await preparedRun();
    const [extra] = await simulation.join({ role: "agent", instance: "agent2" });
    await simulation.settle();
    member(simulation, "model").behaviour.capture = () => undefined;
    const command = await simulation.command("capture", { ...c1, timeoutMs: 30_000 });
    await simulation.settle();
    await extra?.leave();
    member(simulation, "model").behaviour = {};
    await simulation.runOut();
    const { holdings } = expectSuccess(await simulation.outcome(command));
    expect(holdings?.map(({ instance }) => instance)).toEqual(["environment1", "model1", "agent1", "resources1"]);
  });
});

describe("the scope", () => {
  test("may name a part of what was continued, in any order", async () => {
    const simulation = await preparedRun();
    const result = expectSuccess(await simulation.obeyed("capture", { ...c1, scope: [r2] }));
    expect(result.continued).toEqual([r2]);
    expect(result.holdings?.map(({ sessions }) => sessions)).toEqual([1, 1, 1, 1]);
    expect((await asks(simulation, "capture"))[0]?.scope).toEqual([r2]);
  });

  test("[C3] must name no restart; a restart_only server's requests are restarts, and an empty scope commits", async () => {
    const simulation = await startedRun();
    const resources = member(simulation, "resources");
    resources.sessions = [];
    resources.restarts = [r1, r2];
    const { restarts, continued } = expectSuccess(await simulation.obeyed("prepare", c1));
    expect({ restarts, continued }).toEqual({ restarts: [r1, r2], continued: [] });
    const words = expectFailure(await simulation.obeyed("capture", { ...c1, scope: [r1] }), "restart_in_scope");
    expect(words).toBe(
      "the scope names r1 attempt 0, which cannot be captured and starts over after a crash; leave it out",
    );
    expectFailure(await simulation.obeyed("commit", { ...c1, scope: [r1] }), "restart_in_scope");
    const result = expectSuccess(await simulation.obeyed("commit", { ...c1, scope: [] }));
    expect(result).toMatchObject({ phase: "committed", continued: [] });
  });

  test("must name nothing that prepare did not answer as continued; at most ten are spelled out", async () => {
    const simulation = await preparedRun();
    const scope = Array.from({ length: 12 }, (_, at) => ({ rollout: `x${at}`, attempt: 3 }));
    const outcome = await simulation.obeyed("capture", { ...c1, scope: [r1, ...scope] });
    expect(expectFailure(outcome, "not_found")).toBe(
      "the scope names x0 attempt 3, x1 attempt 3, x2 attempt 3, x3 attempt 3, x4 attempt 3, x5 attempt 3, x6 attempt 3, " +
        "x7 attempt 3, x8 attempt 3, x9 attempt 3 and 2 more, which prepare did not answer as continued",
    );
    expect(outcome).toMatchObject({ problem: { details: { count: 12 } } });
    expect(simulation.state.phase).toBe("prepared");
  });

  test("names an episode once, however often it is named", async () => {
    const simulation = await preparedRun();
    expect(expectSuccess(await simulation.obeyed("capture", { ...c1, scope: [r1, r1] })).continued).toEqual([r1]);
  });

  test("[C10] is fixed once: the same again is answered as before, another one conflicts", async () => {
    const simulation = await preparedRun();
    const first = expectSuccess(await simulation.obeyed("capture", { ...c1, scope: [r1, r2] }));
    expect(expectSuccess(await simulation.obeyed("capture", c1))).toEqual(first);
    expect(expectSuccess(await simulation.obeyed("capture", { ...c1, scope: [r2, r1] }))).toEqual(first);
    for (const operation of ["capture", "commit"] as const) {
      const words = expectFailure(await simulation.obeyed(operation, { ...c1, scope: [r1] }), "checkpoint_conflict");
      expect(words).toBe(
        `c1 was fixed with another scope or payload; one checkpoint has one: ${operation} under a fresh id`,
      );
    }
    expectFailure(await simulation.obeyed("commit", { ...c1, scope: [] }), "checkpoint_conflict");
    const more = [r1, r2, { rollout: "r3", attempt: 0 }];
    expectFailure(await simulation.obeyed("commit", { ...c1, scope: more }), "checkpoint_conflict");
    const committed = expectSuccess(await simulation.obeyed("commit", c1));
    expect(expectSuccess(await simulation.obeyed("commit", { ...c1, scope: [r2, r1] }))).toEqual(committed);
    expectFailure(await simulation.obeyed("commit", { ...c1, scope: [r2] }), "checkpoint_conflict");
    expectFailure(await simulation.obeyed("commit", { ...c1, stop: true }), "checkpoint_conflict");
  });
});

test("a capture without a prepare is refused, by the phase", async () => {
  const simulation = await startedRun();
  const outcome = await simulation.obeyed("capture", c1);
  expect(expectFailure(outcome, "invalid_phase")).toBe(
    "capture is allowed in prepared; the phase is idle, nothing is open",
  );
  expect(outcome).toMatchObject({ problem: { details: { phase: "idle" } } });
});

test("only what a process captured for the last ask counts, not what it captured for one before", async () => {
  const simulation = await preparedRun();
  const agent = member(simulation, "agent");
  const stray = {
    type: "session.captured",
    data: { rollout: "r9", attempt: 0, ...c1, digest: digest("r9"), edges: {} },
  };
  const original = agent.obey.bind(agent);
  let strayed = false;
  agent.obey = async () => {
    if (!strayed && agent.gate.asks.some(({ ask }) => ask.operation === "capture")) {
      strayed = true;
      await agent.say(stray);
    }
    return original();
  };
  expect(expectSuccess(await simulation.obeyed("commit", c1)).phase).toBe("committed");
});
