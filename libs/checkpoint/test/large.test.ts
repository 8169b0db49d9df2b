import { maxMessageBytes } from "@holdpoint/checkpoint";
import { expect, test } from "vitest";
import { expectFailure, expectSuccess, type Simulation, startedRun } from "./simulation.ts";

function rollouts(count: number, prefix = "b"): { rollout: string; attempt: number }[] {
  return Array.from({ length: count }, (_, at) => ({ rollout: `${prefix}${at}`, attempt: 0 }));
}

/** A run whose participants hold many sessions that nobody had to open one by one. */
async function largeRun(count: number, prefix?: string): Promise<Simulation> {
  const simulation = await startedRun([]);
  for (const process of simulation.processes) process.sessions = rollouts(count, prefix);
  return simulation;
}

test("[A20] 6,000 episodes cost a checkpoint as many messages of the coordinator as none do", async () => {
  const none = await startedRun([]);
  const many = await largeRun(6_000);
  for (const simulation of [none, many]) {
    simulation.appends = 0;
    expectSuccess(await simulation.obeyed("checkpoint", { checkpointId: "c1" }));
    expectSuccess(await simulation.obeyed("restore", { checkpointId: "x1", source: "c1" }));
  }
  expect(many.appends).toBe(none.appends);
  expect(await many.story()).toEqual(await none.story());
});

test("a receipt that would name more than 10,000 names the environment's episodes, and counts the others'", async () => {
  const simulation = await largeRun(2_501);
  expectSuccess(await simulation.obeyed("checkpoint", { checkpointId: "c1" }));
  const { receipt } = expectSuccess(
    await simulation.obeyed("restore", { checkpointId: "x1", source: "c1", scope: ["b0"] }),
  );
  expect(receipt?.map(({ continued, leftOut }) => [continued.length, leftOut.length])).toEqual([
    [1, 2_500],
    [1, 2_500],
    [1, 2_500],
    [1, 2_500],
  ]);
  expect(receipt?.[1]).not.toHaveProperty("continuedCount");
  await simulation.obeyed("resume", { checkpointId: "x1" });
  await simulation.obeyed("retire", { rollouts: [{ rollout: "b0", attempt: 1 }] });
  const all = expectSuccess(await simulation.obeyed("restore", { checkpointId: "x2", source: "c1" }));
  expect(all.receipt?.map(({ continued, continuedCount }) => [continued.length, continuedCount])).toEqual([
    [2_501, undefined],
    [0, 2_501],
    [0, 2_501],
    [0, 2_501],
  ]);
  await simulation.obeyed("resume", { checkpointId: "x2" });
  const outcome = await simulation.obeyed("restore", { checkpointId: "x3", source: "c1" });
  expect(expectFailure(outcome, "invalid_phase")).toContain("and 2491 more can still run");
});

test("what the log cannot hold is refused in words, and nobody stays parked", async () => {
  const prefix = "a-rather-long-name-of-a-rollout-".repeat(3);
  const simulation = await largeRun(8_000, prefix);
  const outcome = await simulation.obeyed("checkpoint", { checkpointId: "c1" });
  expect(expectFailure(outcome, "invalid_phase")).toMatch(
    /^it would take a message of \d{7} bytes, and the log holds at most 1000000; name fewer episodes\. c1 was resumed: everybody serves again$/,
  );
  expect(outcome).toMatchObject({ problem: { details: { bytes: expect.any(Number), limit: maxMessageBytes } } });
  expect(simulation.state.phase).toBe("idle");

  const prepare = await simulation.obeyed("prepare", { checkpointId: "c2" });
  expect(expectFailure(prepare, "invalid_phase")).toMatch(/^it would take a message of/);
  expect(prepare.result).toEqual({ phase: "preparing", checkpointId: "c2" });
  expectSuccess(await simulation.obeyed("resume", { checkpointId: "c2" }));
});

test("a retirement of as many rollouts as a command can name is obeyed", async () => {
  const simulation = await startedRun([]);
  const outcome = await simulation.obeyed("retire", { rollouts: rollouts(14_000) });
  expect(expectSuccess(outcome).failures).toEqual([]);
  expect(simulation.state.rollouts.size).toBe(14_000);
});

test("a restore that would burn more attempts than the log can name is refused, and touches nothing", async () => {
  const prefix = "a-rather-long-name-of-a-rollout-".repeat(3);
  const simulation = await largeRun(7_650, prefix);
  expectSuccess(await simulation.obeyed("checkpoint", { checkpointId: "c1" }));
  const before = await simulation.log.lastSequence();
  const outcome = await simulation.obeyed("restore", { checkpointId: "x1", source: "c1" });
  expect(expectFailure(outcome, "invalid_phase")).toMatch(/^it would take a message of \d{7} bytes/);
  expect(await simulation.story(before)).toEqual(["command.refused"]);
});
