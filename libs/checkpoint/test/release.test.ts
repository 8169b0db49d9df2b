import { describe, expect, test } from "vitest";
import { expectFailure, expectSuccess, member, type Simulation, startedRun } from "./simulation.ts";

async function checkpoints(...ids: readonly string[]): Promise<Simulation> {
  const simulation = await startedRun();
  for (const checkpointId of ids) expectSuccess(await simulation.obeyed("checkpoint", { checkpointId }));
  return simulation;
}

async function restorable(simulation: Simulation): Promise<readonly string[] | undefined> {
  return expectSuccess(await simulation.obeyed("status", {})).restorable;
}

describe("[S4] release", () => {
  test("with C2 and kept C2 frees what only C1 needs; in the log before anybody is asked [L13]", async () => {
    const simulation = await checkpoints("c1", "c2");
    const before = await simulation.log.lastSequence();
    const outcome = await simulation.obeyed("release", { checkpointId: "c2", kept: ["c2"] });
    expect(await simulation.story(before)).toEqual([
      "command.accepted",
      "checkpoint.releasing",
      "release environment+model+agent+resources",
      "checkpoint.released",
    ]);
    const { command } = outcome;
    const releasing = (await simulation.control()).find(({ event }) => event.type === "checkpoint.releasing");
    expect(releasing?.event.data).toEqual({ command, checkpointId: "c2", kept: ["c2"], dropped: ["c1"] });
    expect(expectSuccess(outcome)).toEqual({ phase: "idle", checkpointId: "c2", restorable: ["c2"] });
    expect(await restorable(simulation)).toEqual(["c2"]);
  });

  test("[S11] hands every participant exactly what is kept, and the committed id", async () => {
    const simulation = await checkpoints("c1", "c2");
    await simulation.obeyed("release", { checkpointId: "c2", kept: ["c2"] });
    for (const { obeyed } of simulation.processes) {
      expect(obeyed.at(-1)).toMatchObject({ operation: "release", checkpointId: "c2", kept: ["c2"] });
    }
  });

  test("for C1 that arrives after C2 was resumed is refused, and nobody is asked", async () => {
    const simulation = await checkpoints("c1", "c2");
    const before = await simulation.log.lastSequence();
    const outcome = await simulation.obeyed("release", { checkpointId: "c1", kept: [] });
    expect(expectFailure(outcome, "stale_checkpoint")).toBe(
      "release names c1, and the most recently resumed is c2; nothing was freed",
    );
    expect(await simulation.story(before)).toEqual(["command.refused"]);
    expect(await restorable(simulation)).toEqual(["c1", "c2"]);
  });

  test("goes by the first resume: a repeated resume of C1 changes nothing", async () => {
    const simulation = await checkpoints("c1", "c2");
    await simulation.obeyed("resume", { checkpointId: "c1" });
    expectFailure(await simulation.obeyed("release", { checkpointId: "c1", kept: [] }), "stale_checkpoint");
    expectSuccess(await simulation.obeyed("release", { checkpointId: "c2", kept: [] }));
    expect(await restorable(simulation)).toEqual([]);
  });

  test("before anything was resumed is refused", async () => {
    const simulation = await startedRun();
    expect(
      expectFailure(await simulation.obeyed("release", { checkpointId: "c1", kept: [] }), "stale_checkpoint"),
    ).toBe("release names c1, and no checkpoint was resumed yet; nothing was freed");
  });

  test("the same again is harmless", async () => {
    const simulation = await checkpoints("c1", "c2");
    const body = { checkpointId: "c2", kept: ["c2"] };
    expectSuccess(await simulation.obeyed("release", body));
    expectSuccess(await simulation.obeyed("release", body));
    expect(await restorable(simulation)).toEqual(["c2"]);
  });

  test("[L13] must keep only what can be restored", async () => {
    const simulation = await checkpoints("c1", "c2");
    const kept = ["c2", "c7", "c8"];
    expect(expectFailure(await simulation.obeyed("release", { checkpointId: "c2", kept }), "not_found")).toBe(
      "c7, c8 cannot be restored, so cannot be kept; nothing was freed",
    );
  });

  test("is refused while prepared, captured, committed or restored", async () => {
    const simulation = await checkpoints("c1");
    const body = { checkpointId: "c1", kept: ["c1"] };
    const open = { checkpointId: "c2" };
    for (const operation of ["prepare", "capture", "commit"] as const) {
      await simulation.obeyed(operation, open);
      expectFailure(await simulation.obeyed("release", body), "invalid_phase");
    }
    await simulation.obeyed("resume", open);
    await simulation.obeyed("retire", { rollouts: ["r1", "r2"].map((rollout) => ({ rollout, attempt: 0 })) });
    expectSuccess(await simulation.obeyed("restore", { checkpointId: "x1", source: "c1" }));
    expect(expectFailure(await simulation.obeyed("release", body), "invalid_phase")).toBe(
      "release is allowed in idle; the phase is restored, the restore x1 is open",
    );
  });

  test("[S15] that is slow delays no checkpoint, and ends by itself, naming who failed", async () => {
    const simulation = await checkpoints("c1", "c2");
    member(simulation, "resources").behaviour.release = () => undefined;
    member(simulation, "agent").behaviour.release = () => ({ problem: { code: "unavailable", message: "no disk" } });
    const release = await simulation.command("release", { checkpointId: "c2", kept: ["c2"], timeoutMs: 30_000 });
    const next = await simulation.command("checkpoint", { checkpointId: "c3", timeoutMs: 30_000 });
    await simulation.settle();
    expectSuccess(await simulation.outcome(next));
    expect(await simulation.hasOutcome(release)).toBe(false);
    await simulation.runOut();
    const result = expectSuccess(await simulation.outcome(release));
    expect(result.failures?.map(({ role }) => role)).toEqual(["agent", "resources"]);
    expect(result.restorable).toEqual(["c2", "c3"]);
  });
});
