import { logSubject } from "@holdpoint/schemas";
import { digest } from "@holdpoint/testing";
import { describe, expect, test } from "vitest";
import { r1, r2, replacements, retiredRun, x1 } from "./retired-run.ts";
import { endedEvent, expectFailure, expectSuccess, member, openedEvent, run, startedRun } from "./simulation.ts";

describe("restore", () => {
  test("verifies, closes, and installs everything under the next attempts; the receipt says what was found", async () => {
    const simulation = await retiredRun();
    const before = await simulation.log.lastSequence();
    const outcome = await simulation.obeyed("restore", x1);
    const result = expectSuccess(outcome);
    expect(await simulation.story(before)).toEqual([
      "command.accepted",
      "checkpoint.opened",
      "restore.started",
      "restore environment+model+agent+resources",
      "restore.installed",
    ]);
    const assignments = replacements(1).map(({ rollout, attempt }) => ({ rollout, from: 0, to: attempt }));
    const cut = { HP_demo: expect.any(Number) };
    const events = (await simulation.control()).map(({ event }) => event).filter((event) => "command" in event.data);
    expect(events.find(({ type }) => type === "restore.started")?.data).toEqual({
      command: outcome.command,
      checkpointId: "x1",
      source: "c1",
      cut,
      assignments,
    });
    expect(member(simulation, "agent").obeyed.at(-1)).toMatchObject({
      operation: "restore",
      source: "c1",
      cut,
      assignments,
    });
    const expected = (role: string) => digest(`held by ${member(simulation, role).subject}`);
    expect(result).toEqual({
      phase: "restored",
      checkpointId: "x1",
      restarts: [],
      receipt: ["environment", "model", "agent", "resources"].map((role) => ({
        role,
        instance: `${role}1`,
        worker: "0",
        expected: expected(role),
        found: expected(role),
        continued: replacements(1),
        restarted: [],
        leftOut: [],
      })),
    });
    expect(simulation.state.phase).toBe("restored");
    expect(simulation.processes.map(({ gate }) => gate.closed)).toEqual(
      Array.from({ length: 4 }, () => ({ checkpointId: "x1", kind: "restore" })),
    );
  });

  test("stays restored until resume; the same again is answered as before, then it is stale", async () => {
    const simulation = await retiredRun();
    const first = expectSuccess(await simulation.obeyed("restore", x1));
    expect(expectSuccess(await simulation.obeyed("restore", x1))).toEqual(first);
    expectFailure(await simulation.obeyed("restore", { ...x1, scope: ["r1"] }), "checkpoint_conflict");
    expectSuccess(await simulation.obeyed("resume", { checkpointId: "x1" }));
    expect(simulation.processes.every(({ gate }) => gate.closed === undefined)).toBe(true);
    expectFailure(await simulation.obeyed("restore", x1), "stale_checkpoint");
  });

  test("[L7] [A11] of the same checkpoint twice takes two different attempts", async () => {
    const simulation = await retiredRun();
    expectSuccess(await simulation.obeyed("restore", x1));
    await simulation.obeyed("resume", { checkpointId: "x1" });
    await simulation.obeyed("retire", { rollouts: replacements(1) });
    const { receipt } = expectSuccess(await simulation.obeyed("restore", { ...x1, checkpointId: "x2" }));
    expect(receipt?.[0]?.continued).toEqual(replacements(2));
  });

  test("[L7] takes an attempt above all that were opened, retired or burnt, and never one that was", async () => {
    const simulation = await retiredRun();
    await member(simulation, "environment").say(openedEvent("r1", 4), endedEvent("r1", 4));
    await simulation.obeyed("retire", { rollouts: [{ rollout: "r2", attempt: 7 }] });
    member(simulation, "agent").behaviour.restore = () => ({ problem: { code: "unavailable", message: "no disk" } });
    expectFailure(await simulation.obeyed("restore", x1), "unavailable");
    member(simulation, "agent").behaviour = {};
    const { receipt } = expectSuccess(await simulation.obeyed("restore", { ...x1, checkpointId: "x2" }));
    expect(receipt?.[0]?.continued).toEqual([
      { rollout: "r1", attempt: 6 },
      { rollout: "r2", attempt: 9 },
    ]);
  });

  test("of a part leaves the rest out, and says so", async () => {
    const simulation = await retiredRun();
    const { receipt } = expectSuccess(await simulation.obeyed("restore", { ...x1, scope: ["r2"] }));
    expect(receipt?.[0]).toMatchObject({
      continued: [{ rollout: "r2", attempt: 1 }],
      leftOut: [{ rollout: "r1", attempt: 0, why: "not in the scope of this restore" }],
    });
  });

  test("[A9] an attempt that a participant cannot go on with starts over: it is refused from then on", async () => {
    const simulation = await retiredRun();
    const restarts = [{ rollout: "r1", attempt: 1 }];
    const installed = [{ rollout: "r2", attempt: 1 }];
    for (const { behaviour, subject } of simulation.processes) {
      behaviour.restore = () => ({ digest: digest(`held by ${subject}`), installed, restarts });
    }
    const result = expectSuccess(await simulation.obeyed("restore", x1));
    expect(result.restarts).toEqual(restarts);
    expect(result.receipt?.[0]).toMatchObject({ continued: installed, restarted: restarts, leftOut: [] });
    expect((await simulation.story()).slice(-2)).toEqual(["restore.installed", "rollouts.marked"]);
    expect(member(simulation, "agent").gate.marks.get("r1")).toBe(1);
    expect(member(simulation, "agent").gate.marks.get("r2")).toBe(0);
  });

  test("makes what it installed live: it has to be retired before it is restored again", async () => {
    const simulation = await retiredRun();
    await simulation.obeyed("restore", x1);
    await simulation.obeyed("resume", { checkpointId: "x1" });
    const outcome = await simulation.obeyed("restore", { ...x1, checkpointId: "x2" });
    expect(expectFailure(outcome, "invalid_phase")).toBe(
      "r1 attempt 1, r2 attempt 1 can still run; retire them first, then restore",
    );
    expect(outcome).toMatchObject({ problem: { details: { count: 2 } } });
  });
});

describe("[L8] a process that is not expected any more", () => {
  test("is fenced before anybody replays: it can add nothing", async () => {
    const simulation = await startedRun();
    const [gone] = await simulation.join({ role: "agent", instance: "agent2" });
    await simulation.obeyed("checkpoint", { checkpointId: "c1" });
    await simulation.obeyed("retire", { rollouts: [r1, r2] });
    await gone?.leave();
    await simulation.settle();
    const outcome = await simulation.obeyed("restore", x1);
    expectSuccess(outcome);
    const { subject = "" } = gone ?? {};
    const last = await simulation.log.lastOn(subject);
    expect(new TextDecoder().decode(last?.body)).toContain(
      `{"type":"participant.fenced","data":{"command":${outcome.command}}}`,
    );
    expect(last?.controlPlane).toBe(true);
    expect(await gone?.say({ type: "session.retired", data: r1 })).toBe(false);
  });

  test("is fenced once, until it has said something again", async () => {
    const simulation = await startedRun();
    const [gone] = await simulation.join({ role: "agent", instance: "agent2" });
    await simulation.obeyed("checkpoint", { checkpointId: "c1" });
    await simulation.obeyed("retire", { rollouts: [r1, r2] });
    await gone?.leave();
    const fences: number[] = [];
    simulation.beforeAppend = async ({ messages }) => {
      if (messages.length > 0) fences.push(messages.filter(({ to }) => to === "log").length);
    };
    for (const [at, checkpointId] of ["x1", "x2", "x3"].entries()) {
      expectSuccess(await simulation.obeyed("restore", { ...x1, checkpointId }));
      await simulation.obeyed("resume", { checkpointId });
      await simulation.obeyed("retire", { rollouts: replacements(at + 1) });
      if (checkpointId !== "x2") continue;
      await gone?.start();
      await gone?.leave();
    }
    expect(fences.filter((count) => count > 0)).toEqual([1, 1]);
  });

  test("who is expected is not fenced", async () => {
    const simulation = await retiredRun();
    expectSuccess(await simulation.obeyed("restore", x1));
    expect(await member(simulation, "agent").say({ type: "session.retired", data: r1 })).toBe(true);
  });
});

test("[A16] a fresh process owes the restore that is under way, and takes part in it", async () => {
  const simulation = await retiredRun();
  member(simulation, "agent").behaviour.restore = () => undefined;
  const restore = await simulation.command("restore", { ...x1, timeoutMs: 30_000 });
  await simulation.settle();
  const agent = member(simulation, "agent");
  agent.kill();
  agent.behaviour = {};
  await agent.start();
  expect(agent.gate.closed).toEqual({ checkpointId: "x1", kind: "restore" });
  await simulation.settle();
  expectSuccess(await simulation.outcome(restore));
  expect(agent.subject).toBe(logSubject(run, agent.options));
});
