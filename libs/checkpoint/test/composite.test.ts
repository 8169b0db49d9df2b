import { describe, expect, test } from "vitest";
import { digest } from "@holdpoint/testing";
import { expectFailure, expectSuccess, member, type Simulation, startedRun, twoSessions } from "./simulation.ts";

const c1 = { checkpointId: "c1" };
const r1 = { rollout: "r1", attempt: 0 };
const r2 = { rollout: "r2", attempt: 0 };
const noDisk = { problem: { code: "unavailable" as const, message: "no disk" } };

function isOpen({ processes, state }: Simulation): boolean {
  return state.phase === "idle" && processes.every(({ gate }) => gate.closed === undefined && gate.fixed === undefined);
}

describe("a checkpoint that fails resumes by itself, and says so", () => {
  test("when it does not get ready", async () => {
    const simulation = await startedRun();
    const blockers = [{ ...r1, reason: "a response is streaming", sinceMs: 1 }];
    member(simulation, "model").behaviour.prepare = () => ({ blockers, restarts: [r2] });
    const outcome = await simulation.obeyed("checkpoint", c1);
    expect(expectFailure(outcome, "deadline_exceeded")).toBe(
      "c1 is not ready: 1 blockers, such as r1 attempt 0 at model model1: a response is streaming. " +
        "Admission stays closed: prepare it again, or resume it. c1 was resumed: everybody serves again",
    );
    expect(outcome.result).toEqual({
      phase: "idle",
      checkpointId: "c1",
      ready: false,
      blockers: [{ role: "model", instance: "model1", ...blockers[0] }],
      blockerCount: 1,
      restarts: [r2],
    });
    expect((await simulation.story()).slice(-7)).toEqual([
      "command.failed",
      "checkpoint.resumed",
      "resume resources",
      "resume agent",
      "resume model",
      "resume environment",
      "resume.ended",
    ]);
    expect(isOpen(simulation)).toBe(true);
  });

  test("when its scope names a restart", async () => {
    const simulation = await startedRun();
    member(simulation, "agent").restarts = [r1];
    const outcome = await simulation.obeyed("checkpoint", { ...c1, scope: [r1] });
    const words = expectFailure(outcome, "restart_in_scope");
    expect(words).toMatch(/^the scope names r1 attempt 0.*c1 was resumed: everybody serves again$/);
    expect(outcome).toMatchObject({ problem: { details: { count: 1 } } });
    expect(outcome.result).toEqual({
      phase: "idle",
      checkpointId: "c1",
      ready: true,
      restarts: [r1],
      continued: [r2],
      preparedAtMs: 1_000_000,
    });
    expect(isOpen(simulation)).toBe(true);
  });

  test("when the capture fails", async () => {
    const simulation = await startedRun();
    member(simulation, "agent").behaviour.capture = () => noDisk;
    const outcome = await simulation.obeyed("checkpoint", c1);
    expectFailure(outcome, "unavailable");
    expect(outcome.result).not.toHaveProperty("capturedAtMs");
    expect(isOpen(simulation)).toBe(true);
  });

  test("when not everybody goes on after the capture", async () => {
    const simulation = await startedRun();
    member(simulation, "agent").behaviour.proceed = () => noDisk;
    const outcome = await simulation.obeyed("checkpoint", c1);
    expectFailure(outcome, "unavailable");
    expect(outcome.result).toMatchObject({ phase: "idle", continued: [r1, r2], capturedAtMs: 1_000_000 });
    expect(outcome.result).not.toHaveProperty("cut");
    expect(isOpen(simulation)).toBe(true);
  });

  test("when the commit fails, also at its deadline: then it still has time to resume", async () => {
    const simulation = await startedRun();
    member(simulation, "resources").behaviour.commit = () => undefined;
    const outcome = await simulation.obeyed("checkpoint", c1);
    expectFailure(outcome, "deadline_exceeded");
    expect(outcome.result?.holdings).toHaveLength(4);
    expect(expectSuccess(await simulation.obeyed("status", {})).restorable).toEqual([]);
    expect(isOpen(simulation)).toBe(true);
  });

  test("and names who does not serve again", async () => {
    const simulation = await startedRun();
    member(simulation, "agent").behaviour = { capture: () => noDisk, resume: () => undefined };
    const outcome = await simulation.obeyed("checkpoint", c1);
    expect(expectFailure(outcome, "unavailable")).toMatch(
      /c1 was resumed: not everybody serves again: agent agent1 \(worker 0\): no answer to resume, asked at sequence \d+ \[deadline_exceeded\]$/,
    );
    expect(outcome.result?.failures).toEqual([expect.objectContaining({ role: "agent" })]);
    expect(isOpen(simulation)).toBe(true);
  });
});

test("a checkpoint stands, though somebody does not serve again: the outcome names them", async () => {
  const simulation = await startedRun();
  member(simulation, "agent").behaviour.resume = () => noDisk;
  const result = expectSuccess(await simulation.obeyed("checkpoint", c1));
  expect(result.failures).toEqual([expect.objectContaining({ role: "agent", ...noDisk })]);
  expect(expectSuccess(await simulation.obeyed("status", {})).restorable).toEqual(["c1"]);
});

test("a checkpoint of a part leaves the rest out", async () => {
  const simulation = await startedRun();
  const result = expectSuccess(await simulation.obeyed("checkpoint", { ...c1, scope: [r2] }));
  expect(result.continued).toEqual([r2]);
  expect(result.holdings?.map(({ sessions }) => sessions)).toEqual([1, 1, 1, 1]);
});

test("resume ends a checkpoint under way: it publishes nothing", async () => {
  const simulation = await startedRun();
  member(simulation, "resources").behaviour.commit = () => undefined;
  const checkpoint = await simulation.command("checkpoint", { ...c1, timeoutMs: 30_000 });
  await simulation.settle();
  expectSuccess(await simulation.obeyed("resume", c1));
  expectFailure(await simulation.outcome(checkpoint), "stale_checkpoint");
  expect(await simulation.story()).not.toContain("checkpoint.committed");
  expect(isOpen(simulation)).toBe(true);
});

test("a checkpoint that only waits for who does not serve again is in nobody's way", async () => {
  const simulation = await startedRun();
  member(simulation, "resources").behaviour.resume = () => undefined;
  const first = await simulation.command("checkpoint", { ...c1, timeoutMs: 30_000 });
  await simulation.settle();
  const second = await simulation.command("checkpoint", { checkpointId: "c2", timeoutMs: 30_000 });
  await simulation.settle();
  const retire = await simulation.command("retire", { rollouts: [r1], timeoutMs: 30_000 });
  await simulation.settle();
  expect(await simulation.hasOutcome(first)).toBe(false);
  expect(simulation.state.stale.has("c2")).toBe(true);
  expectSuccess(await simulation.outcome(retire));
  await simulation.runOut();
  expectSuccess(await simulation.outcome(first));
  expectSuccess(await simulation.outcome(second));
});

test("while a checkpoint is under way its own steps are refused, and another of its id with another scope conflicts", async () => {
  const simulation = await startedRun();
  member(simulation, "resources").behaviour.commit = () => undefined;
  const running = await simulation.command("checkpoint", { ...c1, timeoutMs: 30_000 });
  await simulation.settle();
  for (const operation of ["prepare", "commit", "capture", "proceed"] as const) {
    const words = expectFailure(await simulation.obeyedBeside(operation, c1), "invalid_phase");
    expect(words).toBe(`checkpoint, command ${running}, is being obeyed; wait for its outcome before ${operation}`);
  }
  expectFailure(await simulation.obeyedBeside("checkpoint", { ...c1, scope: [r1] }), "checkpoint_conflict");
  expectFailure(await simulation.obeyedBeside("checkpoint", { checkpointId: "c2" }), "checkpoint_conflict");
});

test("[A8] what was restored is in the next checkpoint", async () => {
  const simulation = await startedRun();
  expectSuccess(await simulation.obeyed("checkpoint", c1));
  await simulation.obeyed("retire", { rollouts: [r1, r2] });
  expectSuccess(await simulation.obeyed("restore", { checkpointId: "x1", source: "c1" }));
  expectSuccess(await simulation.obeyed("resume", { checkpointId: "x1" }));
  for (const process of simulation.processes) {
    process.sessions = twoSessions.map((session) => ({ ...session, attempt: 1 }));
  }
  const result = expectSuccess(await simulation.obeyed("checkpoint", { checkpointId: "c2" }));
  expect(result.continued).toEqual([
    { rollout: "r1", attempt: 1 },
    { rollout: "r2", attempt: 1 },
  ]);
  expect(result.holdings?.[0]?.digest).toBe(digest(`held by ${member(simulation, "environment").subject}`));
});
