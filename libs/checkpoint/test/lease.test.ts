/** What is open ends by itself when nobody comes for it. */
import { type Operation } from "@holdpoint/schemas";
import { describe, expect, test } from "vitest";
import { r1, r2, retiredRun, x1 } from "./retired-run.ts";
import { expectFailure, expectSuccess, type Simulation, startedRun } from "./simulation.ts";

const c1 = { checkpointId: "c1" };
const steps: readonly Operation[] = ["prepare", "capture", "proceed", "commit"];

async function opened(...operations: readonly Operation[]): Promise<Simulation> {
  const simulation = await startedRun();
  for (const operation of operations) expectSuccess(await simulation.obeyed(operation, c1));
  return simulation;
}

function closedBy(simulation: Simulation): readonly (string | undefined)[] {
  return simulation.processes.map(({ gate }) => gate.closed?.checkpointId);
}

async function reasons(simulation: Simulation): Promise<readonly string[]> {
  const events = await simulation.control();
  return events.flatMap(({ event }) => (event.type === "checkpoint.resumed" ? [event.data.reason] : []));
}

describe("the lease", () => {
  test("lasts for the deadline of the command that was accepted, and the grace", async () => {
    const simulation = await startedRun();
    const askedAtMs = simulation.nowMs;
    const result = expectSuccess(await simulation.obeyed("prepare", { ...c1, timeoutMs: 20_000 }));
    expect(result.phase).toBe("prepared");
    expect(simulation.state.open?.leaseUntilMs).toBe(askedAtMs + 20_000 + 600_000);
    expect(expectSuccess(await simulation.obeyed("status", {})).leaseUntilMs).toBe(askedAtMs + 620_000);
  });

  test("is told to participants as a duration, so that their clocks need not agree with anybody's", async () => {
    const simulation = await opened("prepare");
    const moved = (await simulation.control()).find(({ event }) => event.type === "lease.moved");
    expect(moved?.event.data).toMatchObject({ checkpointId: "c1", leaseMs: 630_000 });
    for (const { gate } of simulation.processes) {
      expect(gate.lease).toEqual({ checkpointId: "c1", untilMs: (moved?.timeMs ?? 0) + 630_000 });
    }
  });

  test("is known before anybody is asked for anything, of what is opened as of what is open", async () => {
    const simulation = await startedRun();
    await simulation.obeyed("prepare", c1);
    await simulation.obeyed("capture", c1);
    const types = (await simulation.control()).map(({ event }) => event.type);
    const accepted = types.flatMap((type, at) => (type === "command.accepted" ? [types.slice(at, at + 4)] : []));
    expect(accepted).toEqual([
      ["command.accepted", "checkpoint.opened", "lease.moved", "participants.asked"],
      ["command.accepted", "lease.moved", "participants.asked", "cut.guarded"],
    ]);
  });

  test("is moved by every command that is accepted, and by renew, which answers with its new end", async () => {
    const simulation = await opened("prepare");
    simulation.nowMs += 500_000;
    expectSuccess(await simulation.obeyed("capture", { ...c1, timeoutMs: 5_000 }));
    expect(simulation.state.open?.leaseUntilMs).toBe(simulation.nowMs + 605_000);
    simulation.nowMs += 600_000;
    const result = expectSuccess(await simulation.obeyed("renew", { ...c1, timeoutMs: 60_000 }));
    expect(result).toMatchObject({ phase: "captured", checkpointId: "c1", leaseUntilMs: simulation.nowMs + 660_000 });
    expect(simulation.state.open?.leaseUntilMs).toBe(simulation.nowMs + 660_000);
  });

  test("is not moved by questions, nor by what is refused", async () => {
    const simulation = await opened("prepare");
    const before = simulation.state.open?.leaseUntilMs;
    simulation.nowMs += 1_000;
    await simulation.obeyed("status", {});
    expectFailure(await simulation.obeyed("proceed", c1), "invalid_phase");
    expect(simulation.state.open?.leaseUntilMs).toBe(before);
  });

  test("never ends before the deadline of what is under way", async () => {
    const simulation = await startedRun();
    const [environment] = simulation.processes;
    if (environment !== undefined) environment.behaviour.prepare = () => undefined;
    const startMs = simulation.nowMs;
    await simulation.command("prepare", { ...c1, timeoutMs: 3_600_000 });
    await simulation.settle();
    expectSuccess(await simulation.obeyedBeside("renew", { ...c1, timeoutMs: 1 }));
    expect(simulation.state.open?.leaseUntilMs).toBe(startMs + 3_600_000 + 600_000);
  });
});

describe.each(steps)("[C12] up to %s", (last) => {
  const done = steps.slice(0, steps.indexOf(last) + 1);

  test("everybody serves again when the lease runs out, and the id is stale", async () => {
    const simulation = await opened(...done);
    await simulation.outlive();
    expect(closedBy(simulation)).toEqual([undefined, undefined, undefined, undefined]);
    expect(simulation.state.phase).toBe("idle");
    expect(await reasons(simulation)).toEqual(["lease"]);
    for (const operation of steps) expectFailure(await simulation.obeyed(operation, c1), "stale_checkpoint");
    expectSuccess(await simulation.obeyed("checkpoint", { checkpointId: "c2" }));
  });

  test("[A1] so it is when the coordinator was dead meanwhile, and only another one finds it", async () => {
    const simulation = await opened(...done);
    simulation.nowMs += 10_000_000;
    await simulation.takeOver();
    await simulation.runOut();
    expect(closedBy(simulation)).toEqual([undefined, undefined, undefined, undefined]);
    expect([simulation.state.phase, await reasons(simulation)]).toEqual(["idle", ["lease"]]);
  });
});

test.each([["prepare"], ["prepare", "capture"], ["prepare", "capture", "commit"]] as const)(
  "[C12] after %s %s %s a participant may find it first: the id is stale everywhere",
  async (...operations) => {
    const simulation = await opened(...operations);
    const agent = simulation.processes.find(({ options }) => options.role === "agent");
    await agent?.expire();
    const command = await simulation.command("renew", { ...c1, timeoutMs: 1_000 });
    await simulation.runOut();
    expectFailure(await simulation.outcome(command), "stale_checkpoint");
    expect(closedBy(simulation)).toEqual([undefined, undefined, undefined, undefined]);
    expect([simulation.state.phase, await reasons(simulation)]).toEqual(["idle", ["lease"]]);
  },
);

test("what is over stands in nobody's way: a fresh id that was sent before anybody found out is obeyed", async () => {
  const simulation = await opened("prepare");
  for (const process of simulation.processes) await process.expire();
  const commit = await simulation.command("commit", { ...c1, timeoutMs: 600_000 });
  const fresh = await simulation.command("prepare", { checkpointId: "c2", timeoutMs: 600_000 });
  const status = await simulation.command("status", {});
  await simulation.takeOver();
  await simulation.runOut();
  expectFailure(await simulation.outcome(commit), "stale_checkpoint");
  expectSuccess(await simulation.outcome(fresh));
  expect(await simulation.outcome(status)).toMatchObject({ ok: true, result: { checkpointId: "c2" } });
});

test("a lease that runs out while a capture is under way ends it: no cut stands over a process that serves again", async () => {
  const simulation = await opened("prepare");
  const [environment, , agent] = simulation.processes;
  if (environment !== undefined) environment.behaviour.capture = () => undefined;
  const command = await simulation.command("capture", { ...c1, timeoutMs: 30_000 });
  await simulation.settle();
  await agent?.expire();
  if (environment !== undefined) delete environment.behaviour.capture;
  await simulation.runOut();
  expectFailure(await simulation.outcome(command), "stale_checkpoint");
  expect(await simulation.story()).not.toContain("checkpoint.captured");
  expect([simulation.state.phase, await reasons(simulation)]).toEqual(["idle", ["lease"]]);
});

test("a restore whose controller is gone goes on with what it installed", async () => {
  const simulation = await retiredRun();
  expectSuccess(await simulation.obeyed("restore", x1));
  await simulation.outlive();
  expect([simulation.state.phase, closedBy(simulation)]).toEqual([
    "idle",
    [undefined, undefined, undefined, undefined],
  ]);
  expect(["r1", "r2"].map((rollout) => simulation.state.rollouts.get(rollout)?.live)).toEqual([[1], [1]]);
});

test("the leader commands the end of a lease once, also where it is killed after each of its appends", async () => {
  for (let at = 1; at < 20; at++) {
    const simulation = await opened("prepare");
    const from = simulation.appends;
    simulation.killAfter = (appends) => appends === from + at;
    await simulation.outlive();
    expect(await reasons(simulation)).toEqual(["lease"]);
    expect(closedBy(simulation)).toEqual([undefined, undefined, undefined, undefined]);
    const { queue, ops, phase } = simulation.state;
    expect([queue.size, ops.size, phase]).toEqual([0, 0, "idle"]);
  }
});

test("a resume that comes in time is no lease's end, and a lease names the order of resumes like any other", async () => {
  const simulation = await opened("prepare");
  expectSuccess(await simulation.obeyed("resume", c1));
  expect(await reasons(simulation)).toEqual(["command"]);
  expectSuccess(await simulation.obeyed("prepare", { checkpointId: "c2" }));
  await simulation.outlive();
  expect(simulation.state.lastResumed).toBe("c2");
  expectFailure(await simulation.obeyed("release", { ...c1, kept: [] }), "stale_checkpoint");
});

test("retire in a restore moves its lease: its controller lives", async () => {
  const simulation = await retiredRun();
  expectSuccess(await simulation.obeyed("restore", x1));
  simulation.nowMs += 300_000;
  expectSuccess(await simulation.obeyed("retire", { rollouts: [r1, r2], timeoutMs: 10_000 }));
  expect(simulation.state.open?.leaseUntilMs).toBeGreaterThanOrEqual(simulation.nowMs + 600_000);
});

test("a resume of another id that comes late, and is obeyed all the same, takes no lease from what is open", async () => {
  const simulation = await startedRun();
  simulation.nowMs = Date.parse("2026-11-29T12:00:00Z");
  expectSuccess(await simulation.obeyed("prepare", c1));
  await simulation.command("resume", { checkpointId: "c0", deadlineAt: "2026-11-29T11:00:00Z" });
  await simulation.runOut();
  expect([simulation.state.phase, simulation.state.open?.leaseUntilMs]).toEqual([
    "prepared",
    simulation.nowMs + 600_000,
  ]);
});

describe("a deadline further off than any may be is refused where it enters", () => {
  test.each(["1970-01-01T00:00:00Z", "2200-01-01T00:00:00Z"])("%s", async (deadlineAt) => {
    const simulation = await startedRun();
    simulation.nowMs = Date.parse("2026-11-29T12:00:00Z");
    for (const operation of ["prepare", "resume"] as const) {
      const command = await simulation.command(operation, { ...c1, deadlineAt });
      await simulation.runOut();
      expect(expectFailure(await simulation.outcome(command), "invalid_request")).toBe(
        `deadlineAt ${deadlineAt} is more than a day from the arrival of ${operation}; give an instant of the next 24 hours`,
      );
    }
    expect(simulation.state.phase).toBe("idle");
  });
});
