import { graceMs } from "@holdpoint/checkpoint";
import { describe, expect, test } from "vitest";
import { expectFailure, expectSuccess, member, Simulation, startedRun } from "./simulation.ts";

const c1 = { checkpointId: "c1" };
const r1 = { rollout: "r1", attempt: 0 };
const r2 = { rollout: "r2", attempt: 0 };

function blocker(rollout: string) {
  return { rollout, attempt: 0, reason: "a call is in flight", sinceMs: 999_000 };
}

describe("prepare", () => {
  test("[A3] asks environment, model, agent, resources, each when the one before is ready", async () => {
    const simulation = await startedRun();
    const before = await simulation.log.lastSequence();
    const result = expectSuccess(await simulation.obeyed("prepare", c1));
    expect(await simulation.story(before)).toEqual([
      "command.accepted",
      "checkpoint.opened",
      "prepare environment",
      "prepare model",
      "prepare agent",
      "prepare resources",
      "checkpoint.prepared",
    ]);
    expect(result).toEqual({
      phase: "prepared",
      checkpointId: "c1",
      ready: true,
      restarts: [],
      continued: [r1, r2],
      preparedAtMs: 1_000_000,
    });
    expect(simulation.state.phase).toBe("prepared");
  });

  test("tells participants the milliseconds that are left, counted from the stream's time of the command", async () => {
    const simulation = await startedRun();
    const command = await simulation.command("prepare", { ...c1, timeoutMs: 30_000 });
    simulation.nowMs += 12_000;
    await simulation.settle();
    const asks = (await simulation.control()).flatMap(({ event }) =>
      event.type === "participants.asked" ? [event.data] : [],
    );
    expect(asks.map(({ remainingMs }) => remainingMs)).toEqual([18_000, 18_000, 18_000, 18_000]);
    expect(asks[0]).toEqual({
      command,
      operation: "prepare",
      roles: ["environment"],
      checkpointId: "c1",
      remainingMs: 18_000,
    });
    const opened = (await simulation.control()).find(({ event }) => event.type === "checkpoint.opened");
    expect(opened?.event.data).toEqual({ command, checkpointId: "c1", kind: "checkpoint", deadlineAtMs: 1_030_000 });
  });

  test("takes an instant for a deadline as well", async () => {
    const simulation = await startedRun();
    simulation.nowMs = Date.parse("2026-11-29T12:00:00Z");
    await simulation.command("prepare", { ...c1, deadlineAt: "2026-11-29T12:00:07.5Z" });
    await simulation.settle();
    const [ask] = (await simulation.control()).filter(({ event }) => event.type === "participants.asked");
    expect(ask?.event.data).toMatchObject({ remainingMs: 7500 });
  });

  test("a restart of anybody is a restart, once, and not among the continued", async () => {
    const simulation = await startedRun();
    member(simulation, "agent").restarts = [r2];
    member(simulation, "resources").restarts = [r2];
    const result = expectSuccess(await simulation.obeyed("prepare", c1));
    expect(result).toMatchObject({ restarts: [r2], continued: [r1] });
  });

  test("what is continued is what the environment says, which owns the episodes", async () => {
    const simulation = await startedRun();
    member(simulation, "environment").sessions = [r1];
    expect(expectSuccess(await simulation.obeyed("prepare", c1)).continued).toEqual([r1]);
  });
});

describe("[A4] a prepare that does not get ready", () => {
  test("names the blockers, with reason and since when, and asks nobody further", async () => {
    const simulation = await startedRun();
    member(simulation, "model").behaviour.prepare = () => ({
      blockers: [blocker("r1")],
      blockerCount: 1,
      restarts: [r2],
    });
    const before = await simulation.log.lastSequence();
    const command = await simulation.command("prepare", { ...c1, timeoutMs: 30_000 });
    await simulation.runOut();
    const outcome = await simulation.outcome(command);
    expect(await simulation.story(before)).toEqual([
      "command.accepted",
      "checkpoint.opened",
      "prepare environment",
      "prepare model",
      "checkpoint.stalled",
    ]);
    expect(outcome).toEqual({
      ok: false,
      command,
      operation: "prepare",
      problem: {
        code: "deadline_exceeded",
        message:
          "c1 is not ready: 1 blockers, such as r1 attempt 0 at model model1: a call is in flight. " +
          "Admission stays closed: prepare it again, or resume it",
      },
      result: {
        phase: "preparing",
        checkpointId: "c1",
        ready: false,
        blockers: [{ role: "model", instance: "model1", ...blocker("r1") }],
        blockerCount: 1,
        restarts: [r2],
        failures: [],
      },
    });
  });

  test("names at most 100 blockers, and counts all of them", async () => {
    const simulation = await startedRun();
    await simulation.join({ role: "environment", instance: "environment2" });
    for (const process of simulation.processes.filter(({ options }) => options.role === "environment")) {
      const blockers = Array.from({ length: 100 }, (_, at) => blocker(`${process.options.instance}-${at}`));
      process.behaviour.prepare = () => ({ blockers, blockerCount: 5000 });
    }
    const outcome = await simulation.obeyed("prepare", c1);
    expect(outcome.result?.blockers).toHaveLength(100);
    expect(outcome.result?.blockerCount).toBe(10_000);
  });

  test("a count below what is named is not believed", async () => {
    const simulation = await startedRun();
    member(simulation, "agent").behaviour.prepare = () => ({ blockers: [blocker("r1"), blocker("r2")] });
    expect((await simulation.obeyed("prepare", c1)).result?.blockerCount).toBe(2);
  });

  test("[L10] fails by name of who is silent, 5 s after the deadline, when that is an event", async () => {
    const simulation = await startedRun();
    member(simulation, "agent").behaviour.prepare = () => undefined;
    const before = await simulation.log.lastSequence();
    const command = await simulation.command("prepare", { ...c1, timeoutMs: 30_000 });
    expect(await simulation.settle()).toBe(1_030_000 + graceMs);
    simulation.nowMs = 1_030_000 + graceMs - 1;
    expect(await simulation.settle()).toBe(1_030_000 + graceMs);
    expect(await simulation.hasOutcome(command)).toBe(false);
    simulation.nowMs += 1;
    await simulation.settle();
    expect((await simulation.story(before)).slice(-3)).toEqual([
      "prepare agent",
      "deadline.passed",
      "checkpoint.stalled",
    ]);
    const asked = (await simulation.control()).findLast(({ event }) => event.type === "participants.asked");
    const outcome = await simulation.outcome(command);
    expect(expectFailure(outcome, "deadline_exceeded")).toBe(
      `c1 is not ready: agent agent1 (worker 0): no answer to prepare, asked at sequence ${asked?.sequence} ` +
        "[deadline_exceeded]. Admission stays closed: prepare it again, or resume it",
    );
    expect(outcome.result?.failures).toEqual([
      {
        role: "agent",
        instance: "agent1",
        worker: "0",
        problem: {
          code: "deadline_exceeded",
          message: `no answer to prepare, asked at sequence ${asked?.sequence}`,
        },
      },
    ]);
  });

  test("[A19] one silent worker of several fails it: a checkpoint is never silently partial", async () => {
    const simulation = await startedRun();
    const [second] = await simulation.join({ role: "agent", worker: "1" });
    second?.kill();
    const outcome = await simulation.obeyed("prepare", c1);
    expect(outcome.result?.failures).toEqual([
      expect.objectContaining({ role: "agent", instance: "agent1", worker: "1" }),
    ]);
  });

  test("with a problem has that problem's code, and spells out ten failures at most", async () => {
    const simulation = await startedRun();
    for (let instance = 2; instance <= 12; instance++) {
      await simulation.join({ role: "environment", instance: `environment${instance}` });
    }
    for (const process of simulation.processes.filter(({ options }) => options.role === "environment")) {
      process.behaviour.prepare = () => ({ problem: { code: "unavailable", message: "no disk" } });
    }
    const outcome = await simulation.obeyed("prepare", c1);
    const words = expectFailure(outcome, "unavailable");
    expect(words).toContain("environment environment10 (worker 0): no disk [unavailable]; and 2 more");
    expect(words).not.toContain("environment11");
    expect(outcome.result?.failures).toHaveLength(12);
  });

  test("blockers and failures are told together, and a missed deadline gives the code", async () => {
    const simulation = await startedRun();
    await simulation.join({ role: "environment", instance: "e2" }, { role: "environment", instance: "e3" });
    const [first, second, third] = simulation.processes.filter(({ options }) => options.role === "environment");
    if (first) first.behaviour.prepare = () => ({ problem: { code: "unavailable", message: "no disk" } });
    if (second) second.behaviour.prepare = () => ({ problem: { code: "deadline_exceeded", message: "late" } });
    if (third) third.behaviour.prepare = () => ({ blockers: [blocker("r1"), blocker("r2")] });
    const words = expectFailure(await simulation.obeyed("prepare", c1), "deadline_exceeded");
    expect(words).toBe(
      "c1 is not ready: 2 blockers, such as r1 attempt 0 at environment e3: a call is in flight; " +
        "environment environment1 (worker 0): no disk [unavailable]; environment e2 (worker 0): late [deadline_exceeded]. " +
        "Admission stays closed: prepare it again, or resume it",
    );
  });

  test("leaves admission closed, and is tried again with the same id", async () => {
    const simulation = await startedRun();
    member(simulation, "model").behaviour.prepare = () => undefined;
    expectFailure(await simulation.obeyed("prepare", c1), "deadline_exceeded");
    expect(simulation.state.phase).toBe("preparing");
    expect(member(simulation, "environment").gate.closed?.checkpointId).toBe("c1");

    member(simulation, "model").behaviour = {};
    const before = await simulation.log.lastSequence();
    expectSuccess(await simulation.obeyed("prepare", c1));
    expect(await simulation.story(before)).toEqual([
      "command.accepted",
      "prepare environment",
      "prepare model",
      "prepare agent",
      "prepare resources",
      "checkpoint.prepared",
    ]);
  });

  test("shows what blocks in status until a prepare gets ready", async () => {
    const simulation = await startedRun();
    member(simulation, "model").behaviour.prepare = () => ({ blockers: [blocker("r1")] });
    await simulation.obeyed("prepare", c1);
    const blocked = expectSuccess(await simulation.obeyed("status", {}));
    expect(blocked).toMatchObject({ phase: "preparing", checkpointId: "c1", blockerCount: 1, failures: [] });
    expect(blocked.blockers).toEqual([{ role: "model", instance: "model1", ...blocker("r1") }]);
    member(simulation, "model").behaviour = {};
    await simulation.obeyed("prepare", c1);
    expect(expectSuccess(await simulation.obeyed("status", {}))).not.toHaveProperty("blockers");
  });
});

describe("a prepare is refused", () => {
  test("without a policy model, and with two of them", async () => {
    const simulation = new Simulation();
    await simulation.takeOver();
    await simulation.join({ role: "environment" });
    const words = expectFailure(await simulation.obeyed("prepare", c1), "invalid_phase");
    expect(words).toBe("expected exactly one policy model participant, found 0");
    await simulation.join({ role: "model" }, { role: "model", worker: "1" });
    expectSuccess(await simulation.obeyed("prepare", c1));
    await simulation.obeyed("resume", c1);
    await simulation.join({ role: "model", instance: "model2" });
    const two = expectFailure(await simulation.obeyed("prepare", { checkpointId: "c2" }), "invalid_phase");
    expect(two).toBe("expected exactly one policy model participant, found 2");
    expect(simulation.state.phase).toBe("idle");
  });

  test("[L4] where there are more processes than a cut's batch has messages for, by name of the limit", async () => {
    const simulation = await startedRun([]);
    for (let worker = 1; worker <= 994; worker++) await simulation.join({ role: "agent", worker: String(worker) });
    const outcome = await simulation.obeyed("prepare", c1);
    expect(expectFailure(outcome, "invalid_phase")).toBe(
      "a cut is one batch of at most 1000 messages, so at most 997 processes; 998 are expected",
    );
    expect(outcome).toMatchObject({ problem: { details: { count: 998, limit: 997 } } });
    const status = expectSuccess(await simulation.obeyed("status", {}));
    expect(status.warnings).toEqual([expect.stringContaining("998 are expected")]);

    await simulation.processes.at(-1)?.leave();
    expectSuccess(await simulation.obeyed("checkpoint", c1));
  });
});
