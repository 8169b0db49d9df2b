import { initialState } from "@holdpoint/checkpoint";
import { describe, expect, test } from "vitest";
import { retiredRun } from "./retired-run.ts";
import { expectSuccess, member, Simulation, startedRun } from "./simulation.ts";

describe("status", () => {
  test.each(["status", "discover"] as const)(
    "%s tells who takes part, in which phase, and what can be restored",
    async (operation) => {
      const simulation = await startedRun();
      await simulation.join({ role: "agent", worker: "1", mode: "stateless" });
      await simulation.obeyed("checkpoint", { checkpointId: "c1" });
      const before = await simulation.log.lastSequence();
      const result = expectSuccess(await simulation.obeyed(operation, {}));
      expect(await simulation.story(before)).toEqual(["command.answered"]);
      expect(result).toEqual({
        phase: "idle",
        checkpointId: null,
        participants: [
          {
            role: "environment",
            instance: "environment1",
            workers: [{ worker: "0", incarnation: "environment1-1" }],
            mode: "exported",
            endpoint: null,
          },
          {
            role: "model",
            instance: "model1",
            workers: [{ worker: "0", incarnation: "model1-1" }],
            mode: "exported",
            endpoint: null,
          },
          {
            role: "agent",
            instance: "agent1",
            workers: [
              { worker: "0", incarnation: "agent1-1" },
              { worker: "1", incarnation: "agent1-1" },
            ],
            mode: "stateless",
            endpoint: null,
          },
          {
            role: "resources",
            instance: "resources1",
            workers: [{ worker: "0", incarnation: "resources1-1" }],
            mode: "exported",
            endpoint: null,
          },
        ],
        warnings: [],
        restorable: ["c1"],
        marks: [],
        markCount: 0,
        awaited: [],
        promise: { serverVersion: "2.15.1", syncAlways: true, replicas: 1, persistMode: "default" },
      });
    },
  );

  test("[F6] names who is awaited, by which command, since when", async () => {
    const simulation = await startedRun();
    const [second] = await simulation.join({ role: "model", worker: "1" });
    second?.kill();
    simulation.nowMs += 250;
    const prepare = await simulation.command("prepare", { checkpointId: "c1", timeoutMs: 30_000 });
    await simulation.settle();
    simulation.nowMs += 5000;
    const status = await simulation.command("status", {});
    await simulation.settle();
    const result = expectSuccess(await simulation.outcome(status));
    expect(result).toMatchObject({ phase: "preparing", checkpointId: "c1" });
    expect(result.awaited).toEqual([
      { role: "model", instance: "model1", worker: "1", command: prepare, operation: "prepare", sinceMs: 1_000_250 },
    ]);
  });

  test("[A5] warns where there is not exactly one policy model", async () => {
    const simulation = new Simulation();
    await simulation.takeOver();
    const warnings = async () => expectSuccess(await simulation.obeyed("status", {})).warnings;
    expect(await warnings()).toEqual(["expected exactly one policy model participant, found 0"]);
    await simulation.join({ role: "model" });
    expect(await warnings()).toEqual([]);
    await simulation.join({ role: "model", instance: "model2" });
    expect(await warnings()).toEqual(["expected exactly one policy model participant, found 2"]);
  });

  test("[F8] warns of a stream that can lose what it has acknowledged", async () => {
    const simulation = await startedRun();
    const promise = { serverVersion: "2.15.1", syncAlways: false, replicas: 1, persistMode: "async" };
    simulation.state = { ...simulation.state, promise };
    expect(expectSuccess(await simulation.obeyed("status", {})).warnings).toEqual([
      "the stream acknowledges before it has written: sync_interval is not always",
      "the stream acknowledges before it has written: its persist mode is async",
    ]);
  });

  test("names at most 1,000 marks, and counts them all", async () => {
    const simulation = await startedRun([]);
    const rollouts = Array.from({ length: 1200 }, (_, at) => ({ rollout: `b${at}`, attempt: 2 }));
    await simulation.obeyed("retire", { rollouts });
    const { marks, markCount } = expectSuccess(await simulation.obeyed("status", {}));
    expect(marks).toHaveLength(1000);
    expect(marks?.[0]).toEqual({ rollout: "b0", attempt: 2 });
    expect(markCount).toBe(1200);
  });

  test("shows a checkpoint no more once it was released, nor who has left", async () => {
    const simulation = await retiredRun();
    await member(simulation, "agent").leave();
    await simulation.obeyed("release", { checkpointId: "c1", kept: [] });
    const { restorable, participants } = expectSuccess(await simulation.obeyed("status", {}));
    expect(restorable).toEqual([]);
    expect(participants?.map(({ role }) => role)).toEqual(["environment", "model", "resources"]);
  });
});

describe("an instance is as checkpointable as its weakest worker", () => {
  test.each([
    [["exported", "restart_only", "stateless"], "restart_only"],
    [["stateless", "exported"], "stateless"],
    [["exported", "exported"], "exported"],
  ] as const)("%s: %s", async (modes, weakest) => {
    const simulation = new Simulation();
    await simulation.takeOver();
    for (const [worker, mode] of modes.entries())
      await simulation.join({ role: "resources", worker: String(worker), mode });
    const { participants } = expectSuccess(await simulation.obeyed("status", {}));
    expect(participants).toMatchObject([{ mode: weakest, workers: modes.map(() => ({})) }]);
  });
});

describe("control repeats who takes part", () => {
  test("each incarnation once, with what others have to know of it", async () => {
    const simulation = await startedRun();
    const agent = member(simulation, "agent");
    agent.kill();
    simulation.nowMs += 777;
    await agent.start();
    await simulation.settle();
    const joined = (await simulation.control()).flatMap(({ event }) =>
      event.type === "participant.joined" && event.data.role === "agent" ? [event.data] : [],
    );
    expect(joined).toHaveLength(2);
    expect(joined[1]).toEqual({
      role: "agent",
      instance: "agent1",
      worker: "0",
      incarnation: "agent1-2",
      mode: "exported",
      endpoint: null,
      announcedSequence: agent.startedAt,
      announcedAtMs: 1_000_777,
      lastAtMs: null,
    });
  });

  test("also where it left before that was repeated, and where it came back", async () => {
    const simulation = await startedRun();
    const before = await simulation.log.lastSequence();
    const [brief] = await simulation.join({ role: "agent", instance: "agent2" });
    await brief?.leave();
    await simulation.settle();
    expect(await simulation.story(before)).toEqual(["participant.joined", "participant.left"]);
    await brief?.start();
    await simulation.settle();
    expect(await simulation.story(before)).toEqual(["participant.joined", "participant.left", "participant.joined"]);
    const { participants } = expectSuccess(await simulation.obeyed("status", {}));
    expect(participants?.map(({ instance }) => instance)).toContain("agent2");
  });

  test("[A17] two instances of a role are two participants", async () => {
    const simulation = await startedRun();
    const [second] = await simulation.join({ role: "agent", instance: "agent2" });
    if (second) second.sessions = [{ rollout: "r3", attempt: 0 }];
    const { holdings } = expectSuccess(await simulation.obeyed("checkpoint", { checkpointId: "c1" }));
    expect(holdings?.map(({ instance }) => instance)).toEqual([
      "environment1",
      "model1",
      "agent1",
      "resources1",
      "agent2",
    ]);
    expect(new Set(holdings?.map(({ digest }) => digest)).size).toBe(5);
  });
});

test("a coordinator that has read nothing knows nothing", () => {
  expect(initialState("demo", "HP_demo")).toMatchObject({
    run: "demo",
    stream: "HP_demo",
    sequence: 0,
    controlSequence: 0,
    phase: "idle",
    unreadable: [],
  });
});
