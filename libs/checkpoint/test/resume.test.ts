import { cleanUpMs, graceMs } from "@holdpoint/checkpoint";
import { describe, expect, test } from "vitest";
import { expectFailure, expectSuccess, member, type Simulation, startedRun } from "./simulation.ts";

const c1 = { checkpointId: "c1" };
const c2 = { checkpointId: "c2" };

function closures({ processes }: Simulation): (string | undefined)[] {
  return processes.map(({ gate }) => gate.closed?.checkpointId);
}

const allOpen = [undefined, undefined, undefined, undefined];

describe("resume", () => {
  test("fences the id first, then asks resources, agent, model, environment", async () => {
    const simulation = await startedRun();
    await simulation.obeyed("prepare", c1);
    const before = await simulation.log.lastSequence();
    const outcome = await simulation.obeyed("resume", c1);
    expect(await simulation.story(before)).toEqual([
      "command.accepted",
      "checkpoint.resumed",
      "resume resources",
      "resume agent",
      "resume model",
      "resume environment",
      "resume.ended",
    ]);
    expect(expectSuccess(outcome)).toEqual({ phase: "idle", checkpointId: "c1" });
    const resumed = (await simulation.control()).find(({ event }) => event.type === "checkpoint.resumed");
    expect(resumed?.event.data).toEqual({ command: outcome.command, checkpointId: "c1", reason: "command" });
    expect(closures(simulation)).toEqual(allOpen);
  });

  test("[A6] opens everybody again after only half of them were prepared", async () => {
    const simulation = await startedRun();
    member(simulation, "agent").behaviour.prepare = () => undefined;
    const prepare = await simulation.command("prepare", { ...c1, timeoutMs: 30_000 });
    await simulation.settle();
    expect(closures(simulation)).toEqual(["c1", "c1", "c1", undefined]);
    expectSuccess(await simulation.obeyed("resume", c1));
    expect(closures(simulation)).toEqual(allOpen);
    expectFailure(await simulation.outcome(prepare), "stale_checkpoint");
  });

  test("[C11] ends a prepare that waits, and a late one with that id is refused", async () => {
    const simulation = await startedRun();
    member(simulation, "environment").behaviour.prepare = () => undefined;
    const prepare = await simulation.command("prepare", { ...c1, timeoutMs: 30_000 });
    const joined = await simulation.command("prepare", { ...c1, timeoutMs: 20_000 });
    const resume = await simulation.command("resume", { ...c1, timeoutMs: 30_000 });
    const late = await simulation.command("prepare", { ...c1, timeoutMs: 30_000 });
    await simulation.settle();
    const outcome = await simulation.outcome(prepare);
    expect(expectFailure(outcome, "stale_checkpoint")).toBe(`resume, command ${resume}, ended c1 before this was done`);
    expect(outcome.result).toEqual({ phase: "idle", checkpointId: "c1" });
    expectFailure(await simulation.outcome(joined), "stale_checkpoint");
    expectSuccess(await simulation.outcome(resume));
    expectFailure(await simulation.outcome(late), "stale_checkpoint");
    const failed = (await simulation.control()).filter(({ event }) => event.type === "command.failed");
    expect(failed.map(({ event }) => event.data)).toEqual([
      { command: prepare, problem: { code: "stale_checkpoint", message: expect.any(String) } },
    ]);
    await simulation.runOut();
    expect(closures(simulation)).toEqual(allOpen);
  });

  test("of an id that was never opened makes it stale, also when idle", async () => {
    const simulation = await startedRun();
    expectSuccess(await simulation.obeyed("resume", c1));
    expectFailure(await simulation.obeyed("prepare", c1), "stale_checkpoint");
    expectFailure(await simulation.obeyed("checkpoint", c1), "stale_checkpoint");
    expectFailure(await simulation.obeyed("capture", c1), "stale_checkpoint");
    expect(await simulation.obeyed("resume", c1)).toMatchObject({ ok: true });
  });

  test("of another id leaves the open checkpoint as it is", async () => {
    const simulation = await startedRun();
    await simulation.obeyed("prepare", c1);
    expect(expectSuccess(await simulation.obeyed("resume", c2))).toEqual({ phase: "idle", checkpointId: "c2" });
    expect(simulation.state).toMatchObject({ phase: "prepared", open: c1 });
    expect(closures(simulation)).toEqual(["c1", "c1", "c1", "c1"]);
    expectSuccess(await simulation.obeyed("capture", c1));
  });

  test("goes on through failures, each within its share of the time, and names them all", async () => {
    const simulation = await startedRun();
    await simulation.obeyed("prepare", c1);
    member(simulation, "resources").behaviour.resume = () => undefined;
    member(simulation, "model").behaviour.resume = () => ({ problem: { code: "unavailable", message: "no port" } });
    const command = await simulation.command("resume", { ...c1, timeoutMs: 40_000 });
    expect(await simulation.settle()).toBe(1_010_000 + graceMs / 4);
    expect(simulation.state.phase).toBe("idle");
    await simulation.runOut();
    const outcome = await simulation.outcome(command);
    expect(expectFailure(outcome, "deadline_exceeded")).toMatch(
      /^c1 is over, and not everybody serves again: resources resources1 \(worker 0\): no answer to resume, asked at sequence \d+ \[deadline_exceeded\]; model model1 \(worker 0\): no port \[unavailable\]\. Resume again$/,
    );
    expect(outcome.result).toMatchObject({
      phase: "idle",
      checkpointId: "c1",
      failures: [{ role: "resources" }, { role: "model" }],
    });
    const asks = (await simulation.control()).flatMap(({ event }) =>
      event.type === "participants.asked" && event.data.operation === "resume" ? [event.data.remainingMs] : [],
    );
    expect(asks[0]).toBe(10_000);
    expect(asks[1]).toBe(Math.floor((40_000 - 10_000 - graceMs / 4) / 3));
    expect(closures(simulation)).toEqual(allOpen);
  });

  test("an answer that comes after its share of the time still counts, and is no failure", async () => {
    const simulation = await startedRun();
    await simulation.obeyed("prepare", c1);
    const [resources, environment] = [member(simulation, "resources"), member(simulation, "environment")];
    resources.behaviour.resume = () => undefined;
    environment.behaviour.resume = () => undefined;
    const command = await simulation.command("resume", { ...c1, timeoutMs: 40_000 });
    simulation.nowMs = await simulation.settle();
    await simulation.settle();
    resources.behaviour = {};
    await simulation.settle();
    environment.behaviour = {};
    await simulation.runOut();
    expect(await simulation.outcome(command)).toMatchObject({ ok: true });
  });

  test("is repeatable, and asks again who has not answered", async () => {
    const simulation = await startedRun();
    await simulation.obeyed("prepare", c1);
    const agent = member(simulation, "agent");
    agent.behaviour.resume = () => undefined;
    expectFailure(await simulation.obeyed("resume", c1), "deadline_exceeded");
    agent.behaviour = {};
    expect(await simulation.obeyed("resume", c1)).toMatchObject({ ok: true });
    expect(await simulation.obeyed("resume", c1)).toMatchObject({ ok: true });
  });

  test("has time for everybody, also where its own deadline has passed", async () => {
    const simulation = await startedRun();
    await simulation.obeyed("prepare", c1);
    const command = await simulation.command("resume", { ...c1, timeoutMs: 1 });
    simulation.nowMs += 60_000;
    await simulation.settle();
    expectSuccess(await simulation.outcome(command));
    const ask = (await simulation.control()).find(({ event }) => {
      return event.type === "participants.asked" && event.data.operation === "resume";
    });
    expect(ask?.event.data).toMatchObject({ remainingMs: cleanUpMs / 4 });
  });

  test("is followed by the next prepare at once, while it is still going on", async () => {
    const simulation = await startedRun();
    await simulation.obeyed("prepare", c1);
    member(simulation, "resources").behaviour.resume = () => undefined;
    const resume = await simulation.command("resume", { ...c1, timeoutMs: 40_000 });
    const prepare = await simulation.command("prepare", { ...c2, timeoutMs: 30_000 });
    await simulation.settle();
    expectSuccess(await simulation.outcome(prepare));
    expect(await simulation.hasOutcome(resume)).toBe(false);
    await simulation.runOut();
    expect(closures(simulation)).toEqual(["c2", "c2", "c2", "c2"]);
    expectFailure(await simulation.outcome(resume), "deadline_exceeded");
  });
});

describe("proceed", () => {
  test("lets work go on, callees first, while the id stays open and the cut stays", async () => {
    const simulation = await startedRun();
    await simulation.obeyed("prepare", c1);
    await simulation.obeyed("capture", c1);
    const before = await simulation.log.lastSequence();
    const first = expectSuccess(await simulation.obeyed("proceed", c1));
    expect(await simulation.story(before)).toEqual([
      "command.accepted",
      "proceed resources",
      "proceed agent",
      "proceed model",
      "proceed environment",
      "checkpoint.proceeded",
    ]);
    expect(first).toEqual({ phase: "captured", checkpointId: "c1" });
    expect(closures(simulation)).toEqual(allOpen);
    expectSuccess(await simulation.obeyed("commit", c1));
    expect(expectSuccess(await simulation.obeyed("proceed", c1))).toEqual(first);
  });

  test("goes on through failures, and can be tried again", async () => {
    const simulation = await startedRun();
    await simulation.obeyed("prepare", c1);
    await simulation.obeyed("commit", c1);
    const agent = member(simulation, "agent");
    agent.behaviour.proceed = () => ({ problem: { code: "unavailable", message: "no port" } });
    const outcome = await simulation.obeyed("proceed", c1);
    expect(expectFailure(outcome, "unavailable")).toBe(
      "not everybody went on: agent agent1 (worker 0): no port [unavailable]. Proceed again, or resume c1",
    );
    expect(outcome.result).toMatchObject({ phase: "committed", failures: [{ role: "agent" }] });
    expect((await simulation.story()).at(-1)).toBe("command.failed");
    agent.behaviour = {};
    expect(expectSuccess(await simulation.obeyed("proceed", c1))).toEqual({ phase: "committed", checkpointId: "c1" });
  });

  test("and commit go side by side", async () => {
    const simulation = await startedRun();
    await simulation.obeyed("prepare", c1);
    await simulation.obeyed("capture", c1);
    member(simulation, "resources").behaviour.commit = () => undefined;
    const commit = await simulation.command("commit", { ...c1, timeoutMs: 30_000 });
    expectSuccess(await simulation.obeyedBeside("proceed", c1));
    member(simulation, "resources").behaviour = {};
    await simulation.runOut();
    expect(await simulation.outcome(commit)).toMatchObject({ ok: true });
  });
});

test("every outcome tells of its own id, also where another is open by the time that it is over", async () => {
  const simulation = await startedRun();
  const agent = member(simulation, "agent");
  agent.behaviour.resume = () => undefined;
  const first = await simulation.command("checkpoint", { checkpointId: "c1", timeoutMs: 30_000 });
  await simulation.settle();
  await simulation.command("prepare", { checkpointId: "c2", timeoutMs: 30_000 });
  await simulation.settle();
  const foreign = await simulation.command("resume", { checkpointId: "c9", timeoutMs: 30_000 });
  await simulation.settle();
  agent.behaviour = {};
  await simulation.runOut();
  expect(simulation.state.open?.checkpointId).toBe("c2");
  for (const [command, checkpointId] of [
    [first, "c1"],
    [foreign, "c9"],
  ] as const) {
    expect((await simulation.outcome(command)).result).toMatchObject({ phase: "idle", checkpointId });
  }
});
