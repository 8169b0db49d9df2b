import { anchorOf } from "@holdpoint/checkpoint";
import type { Edges } from "@holdpoint/schemas";
import { describe, expect, test } from "vitest";
import { digest, type SimulatedSession } from "@holdpoint/testing";
import { expectFailure, expectSuccess, member, type Simulation, startedRun, twoSessions } from "./simulation.ts";

const c1 = { checkpointId: "c1" };
const r1 = { rollout: "r1", attempt: 0 };
const r2 = { rollout: "r2", attempt: 0 };

async function capturedRun(sessions: Partial<Record<string, readonly SimulatedSession[]>> = {}): Promise<Simulation> {
  const simulation = await startedRun();
  for (const [role, held = []] of Object.entries(sessions)) member(simulation, role).sessions = [...held];
  expectSuccess(await simulation.obeyed("prepare", c1));
  expectSuccess(await simulation.obeyed("capture", c1));
  return simulation;
}

describe("commit", () => {
  test("asks everybody, and records the checkpoint with its cut, anchor and holdings", async () => {
    const simulation = await capturedRun();
    simulation.nowMs += 500;
    const outcome = await simulation.obeyed("commit", c1);
    const result = expectSuccess(outcome);
    const control = await simulation.control();
    const cut = control.find(({ event }) => event.type === "checkpoint.captured");
    const committed = control.find(({ event }) => event.type === "checkpoint.committed");
    const anchor = anchorOf(await simulation.log.get(cut?.sequence ?? 0), digest);
    expect(committed?.event.data).toEqual({
      command: outcome.command,
      checkpointId: "c1",
      cut: { HP_demo: cut?.sequence },
      anchor,
      scope: [r1, r2],
      holdings: result.holdings,
      capturedAtMs: 1_000_000,
    });
    expect(result).toEqual({
      phase: "committed",
      checkpointId: "c1",
      cut: { HP_demo: cut?.sequence },
      holdings: result.holdings,
      continued: [r1, r2],
      capturedAtMs: 1_000_000,
      restorableAtMs: 1_000_500,
    });
    expect(simulation.state.phase).toBe("committed");
    expect(expectSuccess(await simulation.obeyed("status", {})).restorable).toEqual(["c1"]);
  });

  test("from prepared captures first, with the scope that it names", async () => {
    const simulation = await startedRun();
    await simulation.obeyed("prepare", c1);
    const before = await simulation.log.lastSequence();
    const result = expectSuccess(await simulation.obeyed("commit", { ...c1, scope: [r2], stop: true }));
    expect(await simulation.story(before)).toEqual([
      "command.accepted",
      "capture environment+model+agent+resources",
      ...Array.from({ length: 5 }, () => "cut.guarded"),
      "checkpoint.captured",
      "commit environment+model+agent+resources",
      "checkpoint.committed",
    ]);
    expect(result.continued).toEqual([r2]);
    expect(member(simulation, "resources").obeyed.at(-1)).toMatchObject({ operation: "commit", stop: true });
  });

  test("does not say stop where it was not told to", async () => {
    const simulation = await capturedRun();
    await simulation.obeyed("commit", c1);
    expect(member(simulation, "resources").obeyed.at(-1)).not.toHaveProperty("stop");
  });

  test("from prepared fails as its capture does", async () => {
    const simulation = await startedRun();
    await simulation.obeyed("prepare", c1);
    const unknown = { rollout: "r7", attempt: 0 };
    expectFailure(await simulation.obeyed("commit", { ...c1, scope: [unknown] }), "not_found");
    member(simulation, "agent").behaviour.capture = () => ({ problem: { code: "unavailable", message: "no disk" } });
    const outcome = await simulation.obeyed("commit", c1);
    expect(expectFailure(outcome, "unavailable")).toMatch(/^c1 was not captured: agent agent1 \(worker 0\): no disk/);
    expect(outcome.result?.phase).toBe("prepared");
  });

  test("[C5] a failed snapshot fails it by name; the cut stands, and it is tried again", async () => {
    const simulation = await capturedRun();
    const resources = member(simulation, "resources");
    resources.behaviour.commit = () => ({ problem: { code: "unavailable", message: "snapshot s1 failed" } });
    const outcome = await simulation.obeyed("commit", c1);
    expect(expectFailure(outcome, "unavailable")).toBe(
      "c1 was not committed: resources resources1 (worker 0): snapshot s1 failed [unavailable]. " +
        "Its cut stands: commit it again, or resume it",
    );
    expect(outcome.result).toMatchObject({ phase: "captured", checkpointId: "c1", failures: [{ role: "resources" }] });
    expect((await simulation.story()).at(-1)).toBe("command.failed");
    expect(expectSuccess(await simulation.obeyed("status", {})).restorable).toEqual([]);
    resources.behaviour = {};
    expectSuccess(await simulation.obeyed("commit", c1));
  });

  test("fails by name of who is silent", async () => {
    const simulation = await capturedRun();
    member(simulation, "model").behaviour.commit = () => undefined;
    const words = expectFailure(await simulation.obeyed("commit", c1), "deadline_exceeded");
    expect(words).toMatch(
      /^c1 was not committed: model model1 \(worker 0\): no answer to commit, asked at sequence \d+/,
    );
  });

  test("[C9] publishes nothing once it was resumed, however late the answers come", async () => {
    const simulation = await capturedRun();
    member(simulation, "model").behaviour.commit = () => undefined;
    const commit = await simulation.command("commit", { ...c1, timeoutMs: 30_000 });
    await simulation.settle();
    const resume = await simulation.command("resume", { ...c1, timeoutMs: 30_000 });
    await simulation.settle();
    const asked = (await simulation.control()).findLast(({ event }) => {
      return event.type === "participants.asked" && event.data.operation === "commit";
    });
    const late = { asked: asked?.sequence, operation: "commit", checkpointId: "c1" };
    await member(simulation, "model").say({ type: "participant.answered", data: late });
    await simulation.runOut();
    const words = expectFailure(await simulation.outcome(commit), "stale_checkpoint");
    expect(words).toBe(`resume, command ${resume}, ended c1 before this was done`);
    expectSuccess(await simulation.outcome(resume));
    expect(await simulation.story()).not.toContain("checkpoint.committed");
    expect(expectSuccess(await simulation.obeyed("status", {})).restorable).toEqual([]);
  });
});

function withEdges(edges: Edges): SimulatedSession[] {
  return [{ ...r1, edges }, ...twoSessions.slice(1)];
}

const last = digest("r1");
const other = digest("another");

describe("[L5] edges", () => {
  const disagreements: [string, Partial<Record<string, readonly SimulatedSession[]>>, string][] = [
    [
      "an agent that has a response which the model has not delivered",
      { agent: withEdges({ calls: { received: 3, last }, tools: { received: 2, last } }) },
      "r1 attempt 0: the agent has received 3 model calls, the other end has delivered 2",
    ],
    [
      "an agent that awaits a response which the model has delivered",
      { agent: withEdges({ calls: { received: 1, last }, tools: { received: 2, last } }) },
      "r1 attempt 0: the agent has received 1 model calls, the other end has delivered 2",
    ],
    [
      "another response at each end",
      { model: withEdges({ calls: { received: 2, last: other } }) },
      "r1 attempt 0: the last of 2 model calls has another digest at each end",
    ],
    [
      "a tool result that the resources server has not finished",
      { resources: withEdges({ tools: { received: 1, last } }) },
      "r1 attempt 0: the agent has received 2 tool calls, the other end has delivered 1",
    ],
    [
      "another tool result at each end",
      { resources: withEdges({ tools: { received: 2, last: other } }) },
      "r1 attempt 0: the last of 2 tool calls has another digest at each end",
    ],
    [
      "an agent with responses of a session that an exporting model does not hold",
      { model: twoSessions.slice(1) },
      "r1 attempt 0: the agent has received 2 model calls, the other end has delivered 0",
    ],
  ];
  test.each(disagreements)("%s is no consistent cut", async (_what, sessions, sentence) => {
    const simulation = await capturedRun(sessions);
    const outcome = await simulation.obeyed("commit", c1);
    expect(expectFailure(outcome, "invalid_checkpoint_state")).toBe(
      `c1 is no consistent cut: ${sentence}. Resume it, and take another`,
    );
    expect(outcome).toMatchObject({ problem: { details: { count: 1 } }, result: { phase: "captured" } });
  });

  const agreements: [string, Partial<Record<string, readonly SimulatedSession[]>>][] = [
    [
      "no call yet at either end",
      { agent: withEdges({ calls: { received: 0, last: null } }), model: twoSessions.slice(1) },
    ],
    ["an agent that says nothing of its calls", { agent: withEdges({}) }],
    ["a model that keeps rows of a session whose agent is closed", { agent: twoSessions.slice(1) }],
  ];
  test.each(agreements)("%s agrees", async (_what, sessions) => {
    const simulation = await capturedRun(sessions);
    expect(await simulation.obeyed("commit", c1)).toMatchObject({ ok: true });
  });

  test("with an end that exports nothing have nothing to be compared with", async () => {
    const simulation = await startedRun();
    await member(simulation, "resources").leave();
    const [stateless] = await simulation.join({ role: "resources", instance: "routed", mode: "stateless" });
    if (stateless) stateless.sessions = [r1, r2];
    expect(await simulation.obeyed("checkpoint", c1)).toMatchObject({ ok: true });
  });

  test("of one agent with two resources servers add up", async () => {
    const simulation = await startedRun();
    const [second] = await simulation.join({ role: "resources", instance: "resources2" });
    member(simulation, "agent").sessions = withEdges({ tools: { received: 3, last } });
    member(simulation, "resources").sessions = withEdges({ tools: { received: 2, last: other } });
    if (second) second.sessions = [{ ...r1, edges: { tools: { received: 1, last } } }];
    expect(await simulation.obeyed("checkpoint", c1)).toMatchObject({ ok: true });
  });
});

describe("what was captured", () => {
  test("must be as many sessions as were answered", async () => {
    const simulation = await startedRun();
    member(simulation, "agent").behaviour.capture = () => ({ digest: digest("x"), sessions: 5 });
    const words = expectFailure(await simulation.obeyed("checkpoint", c1), "invalid_checkpoint_state");
    expect(words).toContain("agent.agent1.0 answered 5 sessions and captured 2");
  });

  test("must not have changed when it is committed", async () => {
    const simulation = await capturedRun();
    const now = digest("changed");
    member(simulation, "agent").behaviour.commit = () => ({ digest: now });
    const words = expectFailure(await simulation.obeyed("commit", c1), "invalid_checkpoint_state");
    const before = digest(`held by ${member(simulation, "agent").subject}`);
    expect(words).toContain(`agent.agent1.0 captured ${before} and committed ${now}`);
  });

  test("may be nothing: who answers no digest holds no session", async () => {
    const simulation = await startedRun([]);
    member(simulation, "agent").behaviour.capture = () => ({});
    const { holdings } = expectSuccess(await simulation.obeyed("checkpoint", c1));
    expect(holdings?.[2]).toMatchObject({ role: "agent", digest: digest(""), sessions: 0 });
  });

  test("names at most ten doubts", async () => {
    const many = Array.from({ length: 12 }, (_, at) => ({ rollout: `m${at}`, attempt: 0 }));
    const simulation = await startedRun(many);
    const [one, two] = [{ calls: { received: 1, last } }, { calls: { received: 2, last } }];
    member(simulation, "agent").sessions = many.map((episode) => ({ ...episode, edges: one }));
    member(simulation, "model").sessions = many.map((episode) => ({ ...episode, edges: two }));
    const outcome = await simulation.obeyed("checkpoint", c1);
    const words = expectFailure(outcome, "invalid_checkpoint_state");
    expect(words).toContain("m9 attempt 0");
    expect(words).not.toContain("m10 attempt 0");
    expect(outcome).toMatchObject({ problem: { details: { count: 12 } } });
  });
});

test("[L15] a cut whose message is not in the stream any more is not committed", async () => {
  const simulation = await capturedRun();
  simulation.log.get = async () => Promise.reject(new Error("gone"));
  const words = expectFailure(await simulation.obeyed("commit", c1), "invalid_checkpoint_state");
  expect(words).toMatch(/^the message at the cut, sequence \d+, is not in the stream$/);
});
