/** A participant that will not come back. */
import { describe, expect, test } from "vitest";
import { expectFailure, expectSuccess, type Simulation, startedRun } from "./simulation.ts";

const c1 = { checkpointId: "c1" };
const removal = { role: "resources", instance: "resources2" };

async function withSecond(workers: readonly string[] = ["0"]): Promise<Simulation> {
  const simulation = await startedRun();
  for (const worker of workers) await simulation.join({ role: "resources", instance: "resources2", worker });
  await simulation.settle();
  return simulation;
}

test("a silent participant fails a prepare by name; removed, the next try of the same id is ready without it", async () => {
  const simulation = await withSecond();
  simulation.processes.at(-1)?.kill();
  const outcome = await simulation.obeyed("prepare", c1);
  expect(expectFailure(outcome, "deadline_exceeded")).toContain(
    "resources resources2 (worker 0): no answer to prepare",
  );
  expectSuccess(await simulation.obeyed("remove", removal));
  expect(expectSuccess(await simulation.obeyed("prepare", c1)).ready).toBe(true);
  expectSuccess(await simulation.obeyed("commit", c1));
});

test("it can say nothing more, should it live after all; started again it takes part as before", async () => {
  const simulation = await withSecond();
  const second = simulation.processes.at(-1);
  expectSuccess(await simulation.obeyed("remove", removal));
  expect(await second?.say({ type: "participant.left", data: {} })).toBe(false);
  const named = async () => {
    const { participants = [] } = expectSuccess(await simulation.obeyed("status", {}));
    return participants.map(({ instance }) => instance);
  };
  expect(await named()).not.toContain("resources2");
  await second?.start();
  await simulation.settle();
  expect(await named()).toContain("resources2");
});

test("[A19] one worker is removed, and the others stay", async () => {
  const simulation = await withSecond(["0", "1"]);
  expectSuccess(await simulation.obeyed("remove", { ...removal, worker: "1" }));
  const { participants = [] } = expectSuccess(await simulation.obeyed("status", {}));
  const second = participants.find(({ instance }) => instance === "resources2");
  expect(second?.workers.map(({ worker }) => worker)).toEqual(["0"]);
});

test("a removal that meets a word of the process is decided again, and fences that word's end", async () => {
  const simulation = await withSecond();
  const second = simulation.processes.at(-1);
  let met = 0;
  simulation.beforeAppend = async ({ messages }) => {
    if (met++ === 0 && messages.some(({ to }) => to === "log"))
      await second?.say({ type: "participant.answered", data: { asked: 1, operation: "x", checkpointId: null } });
  };
  expectSuccess(await simulation.obeyed("remove", removal));
  expect(await second?.say({ type: "participant.left", data: {} })).toBe(false);
});

describe("is refused", () => {
  test("for whom nobody expects, by name", async () => {
    const simulation = await startedRun();
    const outcome = await simulation.obeyed("remove", { role: "agent", instance: "agent7", worker: "3" });
    expect(expectFailure(outcome, "not_found")).toBe("worker 3 of agent agent7 is not expected; status names who is");
  });

  test("once it was prepared with: a cut without it would be silently partial", async () => {
    const simulation = await withSecond();
    expectSuccess(await simulation.obeyed("prepare", c1));
    expectFailure(await simulation.obeyed("remove", removal), "invalid_phase");
    expectSuccess(await simulation.obeyed("resume", c1));
    expect(expectSuccess(await simulation.obeyed("remove", removal)).phase).toBe("idle");
  });

  test("while a prepare waits for it", async () => {
    const simulation = await withSecond();
    simulation.processes.at(-1)?.kill();
    await simulation.command("prepare", { ...c1, timeoutMs: 30_000 });
    await simulation.settle();
    expect(expectFailure(await simulation.obeyedBeside("remove", removal), "invalid_phase")).toContain(
      "is being obeyed; wait for its outcome before remove",
    );
  });
});
