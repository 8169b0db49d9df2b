import { expect, test } from "vitest";
import { expectSuccess, startedRun, twoSessions } from "./simulation.ts";

test("a checkpoint is prepared, captured, let go on, committed and resumed, with one outcome", async () => {
  const simulation = await startedRun();
  const before = await simulation.log.lastSequence();
  const result = expectSuccess(await simulation.obeyed("checkpoint", { checkpointId: "c1" }));

  expect(await simulation.story(before)).toEqual([
    "command.accepted",
    "checkpoint.opened",
    "prepare environment",
    "prepare model",
    "prepare agent",
    "prepare resources",
    "checkpoint.prepared",
    "capture environment+model+agent+resources",
    "cut.guarded",
    "cut.guarded",
    "cut.guarded",
    "cut.guarded",
    "cut.guarded",
    "checkpoint.captured",
    "proceed resources",
    "proceed agent",
    "proceed model",
    "proceed environment",
    "checkpoint.proceeded",
    "commit environment+model+agent+resources",
    "checkpoint.committed",
    "checkpoint.resumed",
    "resume resources",
    "resume agent",
    "resume model",
    "resume environment",
    "resume.ended",
  ]);
  const scope = twoSessions.map(({ rollout, attempt }) => ({ rollout, attempt }));
  expect(result).toMatchObject({ phase: "idle", checkpointId: "c1", ready: true, restarts: [], continued: scope });
  expect(result).toMatchObject({ preparedAtMs: 1_000_000, capturedAtMs: 1_000_000, restorableAtMs: 1_000_000 });
  expect(result.holdings?.map(({ role, sessions }) => [role, sessions])).toEqual([
    ["environment", 2],
    ["model", 2],
    ["agent", 2],
    ["resources", 2],
  ]);
  const captured = (await simulation.control()).find(({ event }) => event.type === "checkpoint.captured");
  expect(result.cut).toEqual({ HP_demo: captured?.sequence });
  expect(simulation.processes.map(({ gate }) => gate.closed)).toEqual([undefined, undefined, undefined, undefined]);
});
