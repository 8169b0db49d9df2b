import { digest } from "@holdpoint/testing";
import { describe, expect, test } from "vitest";
import { replacements, retiredRun, x1 } from "./retired-run.ts";
import { endedEvent, expectFailure, expectSuccess, member, type Simulation, startedRun } from "./simulation.ts";

async function refused(simulation: Simulation, body: object, code: string): Promise<string> {
  const before = await simulation.log.lastSequence();
  const words = expectFailure(await simulation.obeyed("restore", body), code);
  expect(await simulation.story(before)).toEqual(["command.refused"]);
  return words;
}

describe("a restore is refused, and nothing is touched,", () => {
  test("where its source is no checkpoint that can be restored", async () => {
    const simulation = await retiredRun();
    expect(await refused(simulation, { checkpointId: "x1", source: "c9" }, "not_found")).toBe(
      "c9 is no checkpoint that can be restored; status lists those that can",
    );
  });

  test("while something of these rollouts is live; what is finished is not", async () => {
    const simulation = await startedRun();
    await simulation.obeyed("checkpoint", { checkpointId: "c1" });
    expect(await refused(simulation, x1, "invalid_phase")).toContain("r1 attempt 0, r2 attempt 0 can still run");
    await member(simulation, "environment").result(endedEvent("r1", 0));
    expect(await refused(simulation, x1, "invalid_phase")).toContain("r2 attempt 0 can still run");
    expectSuccess(await simulation.obeyed("restore", { ...x1, scope: ["r1"] }));
  });

  test("where it names what the checkpoint does not hold, unless an incomplete restore is asked for", async () => {
    const simulation = await retiredRun();
    const outcome = await simulation.obeyed("restore", { ...x1, scope: ["r1", "r8", "r9"] });
    expect(expectFailure(outcome, "invalid_checkpoint_state")).toBe(
      "c1 does not hold r8, r9; allowIncomplete leaves out what it does not hold",
    );
    expect(outcome).toMatchObject({ problem: { details: { count: 2 } } });
    const body = { ...x1, scope: ["r1", "r9"], allowIncomplete: true };
    const { receipt } = expectSuccess(await simulation.obeyed("restore", body));
    expect(receipt?.[0]?.leftOut).toEqual([
      { rollout: "r2", attempt: 0, why: "not in the scope of this restore" },
      { rollout: "r9", attempt: 0, why: "not in the checkpoint" },
    ]);
  });

  test("where a process that held sessions is not here", async () => {
    const simulation = await retiredRun();
    await member(simulation, "resources").leave();
    await simulation.settle();
    expect(await refused(simulation, x1, "invalid_checkpoint_state")).toBe(
      "resources.resources1.0 (2 sessions) held sessions of c1, and no worker of that instance is here: start it first",
    );
  });

  test("[L15] where the stream is not the one that the checkpoint was taken of", async () => {
    const simulation = await retiredRun();
    const { log } = simulation;
    const get = log.get.bind(log);
    log.get = async (sequence) => ({ ...(await get(sequence)), timeMs: 1 });
    const outcome = await simulation.obeyed("restore", x1);
    expect(expectFailure(outcome, "invalid_checkpoint_state")).toMatch(
      /^the message at the cut of c1, sequence (\d+), is not the one that it was taken of: the stream was damaged, rolled back or made anew\. Nothing was touched$/,
    );
    expect(outcome).toMatchObject({ problem: { details: { cut: expect.any(Number) } } });
  });

  test("while another checkpoint is open", async () => {
    const simulation = await retiredRun();
    await simulation.obeyed("prepare", { checkpointId: "c2" });
    expect(await refused(simulation, x1, "checkpoint_conflict")).toBe(
      "c2 is open (prepared), and only one is at a time; to end it before x1: " +
        `nats req hp.demo.ctl.resume '{"checkpointId":"c2","timeoutMs":30000}'`,
    );
  });

  test("where the checkpoint was released", async () => {
    const simulation = await retiredRun();
    await simulation.obeyed("release", { checkpointId: "c1", kept: [] });
    expect(await refused(simulation, x1, "not_found")).toContain("c1 is no checkpoint");
  });
});

async function failed(simulation: Simulation, code: string) {
  const outcome = await simulation.obeyed("restore", x1);
  const words = expectFailure(outcome, code);
  expect(simulation.state).toMatchObject({ phase: "idle", open: undefined });
  for (const { gate } of simulation.processes) {
    expect(gate.closed).toBeUndefined();
    expect([...gate.marks]).toEqual([
      ["r1", 1],
      ["r2", 1],
    ]);
  }
  return { words, receipt: outcome.result?.receipt ?? [], outcome };
}

describe("[A18] a restore that fails burns its attempts, and everybody serves again,", () => {
  test("when one participant cannot", async () => {
    const simulation = await retiredRun();
    const before = await simulation.log.lastSequence();
    const problem = { code: "invalid_checkpoint_state" as const, message: "snapshot s1 is missing" };
    member(simulation, "resources").behaviour.restore = () => ({ problem });
    const { words, receipt, outcome } = await failed(simulation, "invalid_checkpoint_state");
    expect(words).toBe(
      "nothing of c1 was activated: resources resources1 (worker 0): snapshot s1 is missing [invalid_checkpoint_state]. " +
        "x1 was resumed: everybody serves again",
    );
    expect(receipt.map(({ role, found }) => [role, found === null])).toEqual([
      ["environment", false],
      ["model", false],
      ["agent", false],
      ["resources", true],
    ]);
    expect(outcome.result?.failures).toEqual([]);
    expect(await simulation.story(before)).toEqual([
      "command.accepted",
      "checkpoint.opened",
      "restore.started",
      "restore environment+model+agent+resources",
      "restore.failed",
      "rollouts.marked",
      "checkpoint.resumed",
      "resume resources",
      "resume agent",
      "resume model",
      "resume environment",
      "resume.ended",
    ]);
    const resumed = (await simulation.control()).findLast(({ event }) => event.type === "checkpoint.resumed");
    expect(resumed?.event.data).toMatchObject({ reason: "restore_failed" });
  });

  test("when one is silent", async () => {
    const simulation = await retiredRun();
    member(simulation, "agent").behaviour.restore = () => undefined;
    const { words } = await failed(simulation, "deadline_exceeded");
    expect(words).toMatch(/agent agent1 \(worker 0\): no answer to restore, asked at sequence \d+/);
  });

  test("when one finds something else than it held", async () => {
    const simulation = await retiredRun();
    member(simulation, "model").behaviour.restore = () => ({ digest: digest("other"), installed: replacements(1) });
    const { words } = await failed(simulation, "invalid_checkpoint_state");
    const expected = digest(`held by ${member(simulation, "model").subject}`);
    expect(words).toContain(`model.model1.0 should hold ${expected} and found ${digest("other")}`);
  });

  test("[F1] when a rollout was installed by nobody, unless an incomplete restore is asked for", async () => {
    const simulation = await retiredRun();
    const installed = [{ rollout: "r1", attempt: 1 }];
    for (const { behaviour, subject } of simulation.processes) {
      behaviour.restore = ({ assignments = [] }) => {
        const to = assignments[0]?.to ?? 0;
        return { digest: digest(`held by ${subject}`), installed: installed.map((each) => ({ ...each, attempt: to })) };
      };
    }
    const { words, receipt } = await failed(simulation, "invalid_checkpoint_state");
    expect(words).toContain("r2 attempt 1: no participant installed it");
    expect(receipt[0]?.leftOut).toEqual([{ rollout: "r2", attempt: 1, why: "no participant installed it" }]);
    const body = { checkpointId: "x2", source: "c1", allowIncomplete: true };
    const result = expectSuccess(await simulation.obeyed("restore", body));
    expect(result.receipt?.[0]?.leftOut).toEqual([{ rollout: "r2", attempt: 2, why: "no participant installed it" }]);
  });

  test("when resume ends it", async () => {
    const simulation = await retiredRun();
    member(simulation, "agent").behaviour.restore = () => undefined;
    const restore = await simulation.command("restore", { ...x1, timeoutMs: 30_000 });
    await simulation.settle();
    const resume = await simulation.obeyed("resume", { checkpointId: "x1" });
    expectSuccess(resume);
    const words = expectFailure(await simulation.outcome(restore), "stale_checkpoint");
    expect(words).toBe(`resume, command ${resume.command}, ended x1 before this was done`);
    expect([...member(simulation, "agent").gate.marks.values()]).toEqual([1, 1]);
    const { receipt } = expectSuccess(
      await simulation.obeyed("restore", { ...x1, checkpointId: "x2" }).then(async () => {
        member(simulation, "agent").behaviour = {};
        return simulation.obeyed("restore", { ...x1, checkpointId: "x3" });
      }),
    );
    expect(receipt?.[0]?.continued).toEqual(replacements(3));
  });

  test("and names who does not serve again", async () => {
    const simulation = await retiredRun();
    const unavailable = { problem: { code: "unavailable" as const, message: "no disk" } };
    member(simulation, "agent").behaviour = { restore: () => unavailable, resume: () => unavailable };
    const { words, outcome } = await failed(simulation, "unavailable");
    expect(words).toMatch(
      /x1 was resumed: not everybody serves again: agent agent1 \(worker 0\): no disk \[unavailable\]$/,
    );
    expect(outcome.result?.failures).toHaveLength(1);
  });
});
