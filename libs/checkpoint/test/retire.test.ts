import { describe, expect, test } from "vitest";
import { r1, r2, replacements, retiredRun } from "./retired-run.ts";
import { endedEvent, expectFailure, expectSuccess, member, openedEvent, startedRun } from "./simulation.ts";

describe("retire", () => {
  test("raises the marks first, then stops callers before what they call", async () => {
    const simulation = await startedRun();
    const before = await simulation.log.lastSequence();
    const outcome = await simulation.obeyed("retire", { rollouts: [r1] });
    expect(await simulation.story(before)).toEqual([
      "command.accepted",
      "rollouts.marked",
      "retire environment",
      "retire agent",
      "retire model+resources",
      "rollouts.retired",
    ]);
    expect(expectSuccess(outcome)).toEqual({ phase: "idle", checkpointId: null, failures: [] });
    const { command } = outcome;
    const events = (await simulation.control()).map(({ event }) => event);
    const marked = events.find(({ type }) => type === "rollouts.marked");
    expect(marked?.data).toEqual({ command, rollouts: [r1] });
    expect(events.find(({ type }) => type === "rollouts.retired")?.data).toEqual({ command, rollouts: [r1] });
    expect(member(simulation, "model").obeyed.at(-1)).toMatchObject({ rollouts: [r1], checkpointId: null });
    expect(simulation.processes.map(({ gate }) => gate.marks.get("r1"))).toEqual([0, 0, 0, 0]);
  });

  test("goes on through failures: the mark stands, and who has not freed is named", async () => {
    const simulation = await startedRun();
    member(simulation, "environment").behaviour.retire = () => undefined;
    const outcome = await simulation.obeyed("retire", { rollouts: [r1] });
    expect(expectFailure(outcome, "deadline_exceeded")).toMatch(
      /^the rollouts are refused from here on, but not freed everywhere: environment environment1 \(worker 0\): no answer to retire, asked at sequence \d+ \[deadline_exceeded\]\. Retire them again$/,
    );
    expect(outcome.result).toMatchObject({ phase: "idle", failures: [{ role: "environment" }] });
    expect((await simulation.story()).at(-1)).toBe("command.failed");
    expect(member(simulation, "resources").obeyed.at(-1)?.operation).toBe("retire");
    expect(expectSuccess(await simulation.obeyed("status", {})).marks).toEqual([r1]);
  });

  test("is allowed while restored, and not while a checkpoint is open", async () => {
    const simulation = await retiredRun();
    await simulation.obeyed("restore", { checkpointId: "x1", source: "c1" });
    const result = expectSuccess(await simulation.obeyed("retire", { rollouts: replacements(1) }));
    expect(result).toMatchObject({ phase: "restored", checkpointId: "x1" });
    await simulation.obeyed("resume", { checkpointId: "x1" });
    await simulation.obeyed("prepare", { checkpointId: "c2" });
    expect(expectFailure(await simulation.obeyed("retire", { rollouts: [r1] }), "invalid_phase")).toBe(
      "retire is allowed in idle or restored; the phase is prepared, the checkpoint c2 is open",
    );
  });

  test("has to be over before the next checkpoint or restore: what is retired is freed before a commit", async () => {
    const simulation = await retiredRun();
    member(simulation, "agent").behaviour.retire = () => undefined;
    const retire = await simulation.command("retire", { rollouts: [r1], timeoutMs: 30_000 });
    await simulation.settle();
    const bodies = {
      prepare: { checkpointId: "c2" },
      checkpoint: { checkpointId: "c2" },
      restore: { checkpointId: "x1", source: "c1" },
      forget: { rollouts: ["r2"] },
    };
    for (const [operation, body] of Object.entries(bodies)) {
      const outcome = await simulation.obeyedBeside(operation as keyof typeof bodies, body);
      expect(expectFailure(outcome, "invalid_phase")).toBe(
        `retire, command ${retire}, is being obeyed; wait for its outcome before ${operation}`,
      );
      expect(outcome).toMatchObject({ problem: { details: { command: retire } } });
    }
    const other = await simulation.command("retire", { rollouts: [r2], timeoutMs: 30_000 });
    member(simulation, "agent").behaviour = {};
    await simulation.runOut();
    expectSuccess(await simulation.outcome(retire));
    expectSuccess(await simulation.outcome(other));
  });

  test("is obeyed however late it is read: a mark depends on no time", async () => {
    const simulation = await startedRun();
    const command = await simulation.command("retire", { rollouts: [r1], timeoutMs: 1 });
    simulation.nowMs += 60_000;
    await simulation.settle();
    expect((await simulation.story()).includes("rollouts.marked")).toBe(true);
    await simulation.runOut();
    expect(await simulation.hasOutcome(command)).toBe(true);
  });

  test("[A7] a redispatch after it is live again, and only that", async () => {
    const simulation = await retiredRun();
    await member(simulation, "environment").say(openedEvent("r1", 0), openedEvent("r1", 1), openedEvent("r1", 1));
    await simulation.settle();
    expect(simulation.state.rollouts.get("r1")).toEqual({ highest: 1, mark: 0, live: [1] });
    await simulation.obeyed("retire", { rollouts: [{ rollout: "r1", attempt: 3 }] });
    expect(simulation.state.rollouts.get("r1")).toEqual({ highest: 1, mark: 3, live: [] });
    await simulation.obeyed("retire", { rollouts: [r1] });
    expect(simulation.state.rollouts.get("r1")?.mark).toBe(3);
  });
});

describe("forget", () => {
  test("drops the marks of what can no longer run, everywhere", async () => {
    const simulation = await startedRun();
    await simulation.obeyed("retire", { rollouts: [r1, r2] });
    const before = await simulation.log.lastSequence();
    const outcome = await simulation.obeyed("forget", { rollouts: ["r1", "r2"] });
    expect(await simulation.story(before)).toEqual([
      "command.accepted",
      "forget environment+model+agent+resources",
      "rollouts.forgotten",
    ]);
    expect(expectSuccess(outcome)).toEqual({ phase: "idle", checkpointId: null, failures: [] });
    expect(member(simulation, "agent").obeyed.at(-1)?.rollouts).toEqual([r1, r2]);
    expect(member(simulation, "agent").gate.marks.size).toBe(0);
    const status = expectSuccess(await simulation.obeyed("status", {}));
    expect(status).toMatchObject({ marks: [], markCount: 0 });
  });

  test("[A21] leaves no book-keeping behind", async () => {
    const simulation = await startedRun([]);
    const environment = member(simulation, "environment");
    const rollouts = Array.from({ length: 1000 }, (_, at) => `b${at}`);
    for (const rollout of rollouts) await environment.say(openedEvent(rollout, 0));
    await environment.result(...rollouts.map((rollout) => endedEvent(rollout, 0)));
    await simulation.settle();
    expect(simulation.state.rollouts.size).toBe(1000);
    expectSuccess(await simulation.obeyed("forget", { rollouts }));
    expect(simulation.state.rollouts.size).toBe(0);
    expect([simulation.state.ops, simulation.state.askers, simulation.state.queue].map(({ size }) => size)).toEqual([
      0, 0, 0,
    ]);
  });

  test("is refused for what can still run", async () => {
    const simulation = await startedRun();
    expect(expectFailure(await simulation.obeyed("forget", { rollouts: ["r1", "r2"] }), "invalid_phase")).toBe(
      "r1 attempt 0, r2 attempt 0 can still run; retire them before you forget them",
    );
  });

  test("[L7] is refused for what a checkpoint can bring back, until that is released", async () => {
    const simulation = await retiredRun();
    expect(expectFailure(await simulation.obeyed("forget", { rollouts: ["r9", "r2"] }), "invalid_phase")).toBe(
      "r2 is named by c1, which can be restored; release that first",
    );
    await simulation.obeyed("release", { checkpointId: "c1", kept: [] });
    expectSuccess(await simulation.obeyed("forget", { rollouts: ["r9", "r2"] }));
  });

  test("fails by name where somebody has not; the marks stay", async () => {
    const simulation = await startedRun();
    await simulation.obeyed("retire", { rollouts: [r1] });
    member(simulation, "agent").behaviour.forget = () => ({ problem: { code: "unavailable", message: "no disk" } });
    const outcome = await simulation.obeyed("forget", { rollouts: ["r1"] });
    expect(expectFailure(outcome, "unavailable")).toBe(
      "not everybody forgot: agent agent1 (worker 0): no disk [unavailable]. The marks stay; forget again",
    );
    expect(outcome.result).toMatchObject({ phase: "idle", failures: [{ role: "agent" }] });
    expect(expectSuccess(await simulation.obeyed("status", {})).marks).toEqual([r1]);
  });
});
