/** Participants of several workers: one participant to the outside, each of its processes asked, none left out unsaid. */
import { digest } from "@holdpoint/testing";
import { describe, expect, test } from "vitest";
import { r1, r2, x1 } from "./retired-run.ts";
import { expectFailure, expectSuccess, type Simulation, startedRun, twoSessions } from "./simulation.ts";

const c1 = { checkpointId: "c1" };
const everyAsk = ["prepare", "capture", "proceed", "commit", "resume"] as const;

/** The resources server has two workers, which hold a session each. */
async function twoWorkers(): Promise<Simulation> {
  const simulation = await startedRun();
  await simulation.join({ role: "resources", worker: "1" });
  const [first, second] = workers(simulation);
  if (first !== undefined) first.sessions = twoSessions.filter(({ rollout }) => rollout === "r1");
  if (second !== undefined) second.sessions = twoSessions.filter(({ rollout }) => rollout === "r2");
  await simulation.settle();
  return simulation;
}

function workers({ processes }: Simulation) {
  return processes.filter(({ options }) => options.role === "resources");
}

test("[S16] every worker is asked each thing exactly once", async () => {
  const simulation = await twoWorkers();
  expectSuccess(await simulation.obeyed("checkpoint", c1));
  expectSuccess(await simulation.obeyed("release", { ...c1, kept: ["c1"] }));
  expectSuccess(await simulation.obeyed("retire", { rollouts: [r1, r2] }));
  for (const { obeyed } of workers(simulation)) {
    expect(obeyed.map(({ operation }) => operation)).toEqual([...everyAsk, "release", "retire"]);
  }
});

test("[A17] the checkpoint names what each worker held", async () => {
  const simulation = await twoWorkers();
  const { holdings = [] } = expectSuccess(await simulation.obeyed("checkpoint", c1));
  const held = holdings.filter(({ role }) => role === "resources");
  expect(held.map(({ worker, sessions }) => [worker, sessions])).toEqual([
    ["0", 1],
    ["1", 1],
  ]);
});

test("[A19] with a dead worker there is no checkpoint, and the outcome names the worker", async () => {
  const simulation = await twoWorkers();
  workers(simulation)[1]?.kill();
  const outcome = await simulation.obeyed("checkpoint", c1);
  expect(expectFailure(outcome, "deadline_exceeded")).toContain(
    "resources resources1 (worker 1): no answer to prepare",
  );
  expect(simulation.state.restorable.size).toBe(0);
});

/** c1 is taken, its rollouts are retired, and worker 1 is not there any more. */
async function orphaned(): Promise<Simulation> {
  const simulation = await twoWorkers();
  expectSuccess(await simulation.obeyed("checkpoint", c1));
  expectSuccess(await simulation.obeyed("retire", { rollouts: [r1, r2] }));
  workers(simulation)[1]?.kill();
  expectSuccess(await simulation.obeyed("remove", { role: "resources", instance: "resources1", worker: "1" }));
  return simulation;
}

describe("after a restore", () => {
  test("whichever worker is there goes on with the sessions; the receipt says who took whose", async () => {
    const simulation = await orphaned();
    const { receipt = [] } = expectSuccess(await simulation.obeyed("restore", x1));
    const [first] = workers(simulation);
    const adoption = { role: "resources", instance: "resources1", worker: "0", of: "1" };
    expect(first?.obeyed.at(-1)).toMatchObject({ operation: "restore", adoptions: [adoption] });
    const held = digest(`held by ${first?.subjectOf("1")}`);
    expect(receipt.find(({ adoptedBy }) => adoptedBy !== undefined)).toEqual({
      role: "resources",
      instance: "resources1",
      worker: "1",
      adoptedBy: "0",
      expected: held,
      found: held,
      continued: [],
      restarted: [],
      leftOut: [],
    });
  });

  test("what several lost workers held is spread over those of their own instance", async () => {
    const simulation = await startedRun();
    const others = ["1", "2", "3"].map((worker) => ({ role: "resources" as const, worker }));
    await simulation.join({ role: "resources", instance: "resources0" }, ...others);
    for (const process of workers(simulation)) process.sessions = twoSessions.slice(0, 1);
    const [first] = workers(simulation);
    if (first !== undefined) first.sessions = [...twoSessions];
    await simulation.settle();
    const edges = { calls: { received: 2, last: digest("r1") } };
    for (const process of workers(simulation).slice(1)) process.sessions = [{ ...r1, edges }];
    expectSuccess(await simulation.obeyed("checkpoint", c1));
    expectSuccess(await simulation.obeyed("retire", { rollouts: [r1, r2] }));
    for (const worker of ["2", "3"]) {
      expectSuccess(await simulation.obeyed("remove", { role: "resources", instance: "resources1", worker }));
    }
    await simulation.command("restore", { ...x1, timeoutMs: 30_000 });
    await simulation.settle();
    const started = (await simulation.control()).findLast(({ event }) => event.type === "restore.started")?.event;
    expect(started?.type === "restore.started" && started.data.adoptions).toEqual([
      { role: "resources", instance: "resources1", worker: "0", of: "2" },
      { role: "resources", instance: "resources1", worker: "1", of: "3" },
    ]);
  });

  test("what was taken over and is not what the checkpoint names is refused", async () => {
    const simulation = await orphaned();
    const [first] = workers(simulation);
    if (first === undefined) throw new Error("no worker");
    first.behaviour.restore = ({ assignments = [] }) => {
      const installed = assignments.map(({ rollout, to: attempt }) => ({ rollout, attempt }));
      return { digest: digest(`held by ${first.subject}`), installed, adopted: [{ worker: "1", digest: digest("x") }] };
    };
    const outcome = await simulation.obeyed("restore", x1);
    expect(expectFailure(outcome, "invalid_checkpoint_state")).toContain("resources.resources1.1 should hold");
  });

  test("a coordinator that takes over in between finds the same", async () => {
    const simulation = await orphaned();
    const [first] = workers(simulation);
    if (first !== undefined) first.behaviour.restore = () => undefined;
    const command = await simulation.command("restore", { ...x1, timeoutMs: 30_000 });
    await simulation.settle();
    await simulation.takeOver();
    if (first !== undefined) first.behaviour = {};
    await simulation.runOut();
    const { receipt = [] } = expectSuccess(await simulation.outcome(command));
    expect(receipt.filter(({ adoptedBy }) => adoptedBy === "0")).toHaveLength(1);
  });

  test("without any worker of the instance it is refused before anything is touched", async () => {
    const simulation = await orphaned();
    expectSuccess(await simulation.obeyed("remove", { role: "resources", instance: "resources1" }));
    expect(expectFailure(await simulation.obeyed("restore", x1), "invalid_checkpoint_state")).toContain(
      "no worker of that instance is here: start it first",
    );
  });
});
