import { expect, test } from "vitest";
import { expectFailure, expectSuccess, member, startedRun } from "./simulation.ts";

const c1 = { checkpointId: "c1" };

test("the same prepare sent twice while it waits is one, with two outcomes", async () => {
  const simulation = await startedRun();
  const before = await simulation.log.lastSequence();
  const first = await simulation.command("prepare", { ...c1, timeoutMs: 30_000 });
  const second = await simulation.command("prepare", { ...c1, timeoutMs: 10_000 });
  const third = await simulation.command("prepare", { ...c1, timeoutMs: 10_000 });
  await simulation.runOut();
  const outcome = await simulation.outcome(first);
  expectSuccess(outcome);
  expect(await simulation.outcome(second)).toEqual({ ...outcome, command: second });
  expect(await simulation.outcome(third)).toEqual({ ...outcome, command: third });
  const story = await simulation.story(before);
  expect(story.filter((type) => type === "command.accepted")).toHaveLength(3);
  expect(story.filter((type) => type === "checkpoint.opened")).toHaveLength(1);
  expect(story.filter((type) => type === "command.answered")).toHaveLength(2);
});

test("a prepare that has succeeded is answered again as it was, until resume, then it is stale", async () => {
  const simulation = await startedRun();
  const first = expectSuccess(await simulation.obeyed("prepare", c1));
  await simulation.obeyed("capture", c1);
  simulation.nowMs += 1000;
  expect(expectSuccess(await simulation.obeyed("prepare", c1))).toEqual(first);
  await simulation.obeyed("resume", c1);
  expect(expectFailure(await simulation.obeyed("prepare", c1), "stale_checkpoint")).toBe(
    "c1 was resumed, which ends it for ever; choose a fresh id",
  );
});

test("a process that joins while a checkpoint is open closes as well, and takes part in the cut", async () => {
  const simulation = await startedRun();
  await simulation.obeyed("prepare", c1);
  const [late] = await simulation.join({ role: "agent", instance: "agent2" });
  await simulation.settle();
  expect(late?.gate.closed).toEqual({ checkpointId: "c1", kind: "checkpoint" });
  const result = expectSuccess(await simulation.obeyed("capture", c1));
  expect(result.holdings?.map(({ instance }) => instance)).toContain("agent2");
});

test("a participant that is restarted while it is asked answers in its next life", async () => {
  const simulation = await startedRun();
  const agent = member(simulation, "agent");
  agent.kill();
  const command = await simulation.command("prepare", { ...c1, timeoutMs: 30_000 });
  await simulation.settle();
  expect(await simulation.hasOutcome(command)).toBe(false);
  await agent.start();
  await simulation.settle();
  expectSuccess(await simulation.outcome(command));
});
