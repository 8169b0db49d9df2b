import { operationTable } from "@holdpoint/checkpoint";
import { type Operation, Phase } from "@holdpoint/schemas";
import { describe, expect, test } from "vitest";
import { retiredRun } from "./retired-run.ts";
import { expectFailure, expectSuccess, member, type Simulation, startedRun } from "./simulation.ts";

/** A run in each phase; what is open is called `open`. */
const reaching: Record<Phase, () => Promise<Simulation>> = {
  idle: retiredRun,
  preparing: async () => {
    const simulation = await retiredRun();
    member(simulation, "agent").behaviour.prepare = () => ({
      blockers: [{ rollout: "r1", attempt: 0, reason: "x", sinceMs: 1 }],
    });
    await simulation.obeyed("prepare", { checkpointId: "open" });
    member(simulation, "agent").behaviour = {};
    return simulation;
  },
  prepared: async () => after("prepare"),
  captured: async () => after("prepare", "capture"),
  committed: async () => after("prepare", "capture", "commit"),
  restored: async () => {
    const simulation = await retiredRun();
    expectSuccess(await simulation.obeyed("restore", { checkpointId: "open", source: "c1" }));
    return simulation;
  },
};

async function after(...operations: readonly Operation[]): Promise<Simulation> {
  const simulation = await retiredRun();
  for (const operation of operations) expectSuccess(await simulation.obeyed(operation, { checkpointId: "open" }));
  return simulation;
}

const bodies: { readonly [O in Operation]?: object } = {
  restore: { checkpointId: "open", source: "c1" },
  retire: { rollouts: [{ rollout: "r9", attempt: 0 }] },
  forget: { rollouts: ["r9"] },
  remove: { role: "agent", instance: "agent1" },
  release: { checkpointId: "c1", kept: ["c1"] },
  status: {},
  discover: {},
};

/** In which phases an operation is obeyed, or answered with its recorded success. */
const table: { readonly [O in Operation]: readonly string[] } = {
  status: ["idle", "preparing", "prepared", "captured", "committed", "restored"],
  discover: ["idle", "preparing", "prepared", "captured", "committed", "restored"],
  prepare: ["idle", "preparing", "prepared", "captured", "committed"],
  renew: ["preparing", "prepared", "captured", "committed", "restored"],
  capture: ["prepared", "captured", "committed"],
  proceed: ["captured", "committed"],
  commit: ["prepared", "captured", "committed"],
  checkpoint: ["idle"],
  resume: ["idle", "preparing", "prepared", "captured", "committed", "restored"],
  restore: ["idle", "restored"],
  retire: ["idle", "restored"],
  forget: ["idle", "restored"],
  remove: ["idle", "preparing"],
  release: ["idle"],
};

describe.each(Phase.options)("in the phase %s", (phase) => {
  test.each(Object.keys(table) as Operation[])(
    "%s is obeyed where the protocol says, and refused elsewhere",
    async (operation) => {
      const simulation = await reaching[phase]();
      expect(simulation.state.phase).toBe(phase);
      const before = await simulation.log.lastSequence();
      const outcome = await simulation.obeyed(operation, bodies[operation] ?? { checkpointId: "open" });
      const isObeyed = table[operation].includes(phase);
      const refused = { ok: false, problem: { code: "invalid_phase", message: expect.stringContaining(operation) } };
      expect(outcome).toMatchObject(isObeyed ? { ok: true } : refused);
      const story = await simulation.story(before);
      expect(story.includes("command.refused")).toBe(!isObeyed);
      expect(simulation.state.phase).toBe(operationTable().get(operation)?.get(phase) ?? phase);
    },
  );
});

const onOpen: readonly Operation[] = ["prepare", "renew", "capture", "proceed", "commit", "checkpoint", "restore"];

test.each(onOpen)("[A1] %s of an id that was resumed is stale, whatever else is open", async (operation) => {
  const simulation = await after("prepare");
  const body = { ...bodies[operation], checkpointId: "c1", ...(operation === "restore" && { source: "c1" }) };
  expectFailure(await simulation.obeyed(operation, body), "stale_checkpoint");

  await simulation.takeOver();
  expect(expectFailure(await simulation.obeyed(operation, body), "stale_checkpoint")).toContain("c1 was resumed");
});

test.each(onOpen)("%s of another id than the open one conflicts", async (operation) => {
  const simulation = await after("prepare");
  const body = { ...bodies[operation], checkpointId: "c9", ...(operation === "restore" && { source: "c1" }) };
  const outcome = await simulation.obeyed(operation, body);
  expect(expectFailure(outcome, "checkpoint_conflict")).toBe(
    "open is open (prepared), and only one is at a time; to end it before c9: " +
      `nats req hp.demo.ctl.resume '{"checkpointId":"open","timeoutMs":30000}'`,
  );
  expect(outcome).toMatchObject({ problem: { details: { checkpointId: "open", phase: "prepared" } } });
});

test("a checkpoint's operations mean nothing to a restore that is under way", async () => {
  const simulation = await retiredRun();
  member(simulation, "agent").behaviour.restore = () => undefined;
  await simulation.command("restore", { checkpointId: "x1", source: "c1", timeoutMs: 30_000 });
  await simulation.settle();
  expect(simulation.state.phase).toBe("preparing");
  for (const operation of ["prepare", "capture", "commit", "proceed"] as const) {
    const outcome = await simulation.obeyedBeside(operation, { checkpointId: "x1" });
    expectFailure(outcome, "invalid_phase");
  }
  expectFailure(
    await simulation.obeyedBeside("retire", { rollouts: [{ rollout: "r1", attempt: 0 }] }),
    "invalid_phase",
  );
});

test.each(["prepare", "capture", "commit", "checkpoint", "restore", "release", "forget"] as const)(
  "[L10] %s is not begun when its deadline has passed before it could be",
  async (operation) => {
    const simulation = await (operation === "capture" || operation === "commit" ? after("prepare") : retiredRun());
    const body = bodies[operation] ?? { checkpointId: "open" };
    const command = await simulation.command(operation, { ...body, timeoutMs: 10_000 });
    simulation.nowMs += 10_000;
    const before = await simulation.log.lastSequence();
    await simulation.runOut();
    expect(expectFailure(await simulation.outcome(command), "deadline_exceeded")).toBe(
      `the deadline of ${operation} had passed before it could begin; nothing was done`,
    );
    expect(await simulation.story(before)).toEqual(["command.refused"]);
  },
);

test("a deadline that is reached in the next millisecond is not passed", async () => {
  const simulation = await retiredRun();
  const command = await simulation.command("prepare", { checkpointId: "open", timeoutMs: 10_000 });
  simulation.nowMs += 9_999;
  await simulation.settle();
  expectSuccess(await simulation.outcome(command));
  expect(simulation.state.phase).toBe("prepared");
});

test("status has no deadline to miss, and may have one", async () => {
  const simulation = await startedRun();
  const command = await simulation.command("status", { timeoutMs: 1 });
  simulation.nowMs += 60_000;
  await simulation.settle();
  expect(await simulation.outcome(command)).toMatchObject({ ok: true });
});

describe("the same command", () => {
  test("is the same whatever its deadline, and in whatever order its lists are", async () => {
    const simulation = await retiredRun();
    const rollouts = ["r7", "r8"].map((rollout) => ({ rollout, attempt: 0 }));
    const first = await simulation.command("retire", { rollouts, timeoutMs: 20_000 });
    const second = await simulation.command("retire", { rollouts: rollouts.toReversed(), timeoutMs: 10_000 });
    await simulation.settle();
    const accepted = (await simulation.control()).filter(({ event }) => event.type === "command.accepted");
    expect(accepted.slice(-2).map(({ event }) => event.data)).toEqual([
      { command: first },
      { command: second, joins: first },
    ]);
    expect(await simulation.outcome(second)).toEqual({ ...(await simulation.outcome(first)), command: second });
  });

  test("with another payload is another one", async () => {
    const simulation = await retiredRun();
    const [first, second] = ["r7", "r8"].map((rollout) => ({ rollouts: [{ rollout, attempt: 0 }], timeoutMs: 20_000 }));
    const commands = [await simulation.command("retire", first), await simulation.command("retire", second)];
    await simulation.settle();
    const accepted = (await simulation.control()).filter(({ event }) => event.type === "command.accepted");
    expect(accepted.slice(-2).map(({ event }) => event.data)).toEqual(commands.map((command) => ({ command })));
  });

  test("has its outcome written once; a foreign one ends it all the same", async () => {
    const simulation = await startedRun();
    member(simulation, "agent").behaviour.prepare = () => undefined;
    const first = await simulation.command("prepare", { checkpointId: "c1", timeoutMs: 30_000 });
    const second = await simulation.command("prepare", { checkpointId: "c1", timeoutMs: 30_000 });
    await simulation.settle();
    await simulation.raw(`hp.demo.outcome.${first}`, "not json");
    await simulation.settle();
    expect(simulation.state.ops.size).toBe(0);
    expect(simulation.state.askers.size).toBe(0);
    const outcome = await simulation.outcome(second);
    expect(expectFailure(outcome, "unavailable")).toBe(`the outcome of command ${first} cannot be read; try again`);
    expect(outcome).toMatchObject({ command: second, operation: "prepare" });
    expectSuccess(await simulation.obeyed("resume", { checkpointId: "c1" }));
  });

  test("that waits is ended by a foreign outcome too", async () => {
    const simulation = await startedRun();
    const command = await simulation.command("prepare", { checkpointId: "c1", timeoutMs: 30_000 });
    await simulation.raw(`hp.demo.outcome.${command}`, "{}");
    await simulation.settle();
    expect(simulation.state.phase).toBe("idle");
    expect(simulation.state.queue.size).toBe(0);
  });
});
