/** What a checkpoint asks of a process: closing, capturing, letting go on. */
import { expect, test } from "vitest";
import { type Agent, episodeOf, received, Room, seeded, started, turns } from "./room.ts";

const r1 = episodeOf("r1");
const r2 = episodeOf("r2");

async function roomWith(...rollouts: readonly string[]): Promise<{ room: Room; agent: Agent }> {
  const room = new Room();
  const agent = await room.enter();
  for (const rollout of rollouts) await agent.record(seeded(episodeOf(rollout)));
  return { room, agent };
}

/** Prepares and captures `c1` with all sessions in its scope. */
async function captured(room: Room, scope = [r1]): Promise<void> {
  await room.obeyed("prepare");
  expect(await room.obeyed("capture", { scope })).toMatchObject({ sessions: scope.length });
}

test("[L4] from captured until the cut the process appends nothing; then others go on, and the captured wait for proceed", async () => {
  const { room, agent } = await roomWith("r1", "r2");
  await captured(room);
  const { length } = await room.said();
  const first = agent.record(received(r1, 0));
  const second = agent.record(received(r2, 0));
  const parked = agent.boundary(r2);
  await turns();
  expect((await room.said()).length).toBe(length);
  await room.cut([r1]);
  await second;
  await turns();
  expect((await room.types()).slice(length)).toEqual(["call.received", "session.parked"]);
  expect(agent.sessions.get(r1)?.state.calls).toBe(0);
  await room.obeyed("proceed");
  await Promise.all([first, parked]);
  expect(agent.sessions.get(r1)?.state.calls).toBe(1);
});

test("[L4] what a capture fixed and its answer stand in one message, so that nothing comes between", async () => {
  const { room } = await roomWith("r1", "r2");
  await captured(room, [r1, r2]);
  const last = (await room.messages()).at(-1) ?? [];
  expect(last.map(({ type }) => type)).toEqual(["session.captured", "session.captured", "participant.answered"]);
});

test("[L4] a refused cut captures again, and what the captured sessions say goes on waiting", async () => {
  const { room, agent } = await roomWith("r1");
  await captured(room);
  const call = agent.record(received(r1, 0));
  const again = await room.obeyed("capture", { scope: [r1] });
  expect(again).toMatchObject({ sessions: 1 });
  await room.cut([r1]);
  await room.obeyed("proceed");
  await call;
  expect(agent.sessions.fixedBy("c1")).toMatchObject([{ state: { calls: 0 } }]);
  expect(agent.sessions.get(r1)?.state.calls).toBe(1);
});

test("[L4] a resume lets go on what was captured and never cut", async () => {
  const { room, agent } = await roomWith("r1");
  await captured(room);
  const call = agent.record(received(r1, 0));
  await room.resume();
  await call;
  expect(agent.gate).toMatchObject({ closed: undefined, fixed: undefined, asks: [] });
});

test("[L4] a capture that failed elsewhere holds nothing here, and the checkpoint can be captured again", async () => {
  const { room, agent } = await roomWith("r1");
  await captured(room);
  const call = agent.record(received(r1, 0));
  const problem = { code: "unavailable" as const, message: "the model is away" };
  await room.decide({ type: "command.failed", data: { command: 1, problem } });
  await call;
  expect(await room.obeyed("capture", { command: 2, scope: [r1] })).toMatchObject({ sessions: 1 });
  expect(agent.sessions.fixedBy("c1")).toMatchObject([{ state: { calls: 1 } }]);
});

test.each(["resumed", "failed"])(
  "[L4] a capture that is over before it was answered (%s) lets the process go on",
  async (how) => {
    const room = new Room();
    let aborted = false;
    const hooks = {
      capture: (_sessions: unknown, _id: string, signal: AbortSignal) =>
        new Promise<never>((_resolve, reject) => {
          signal.addEventListener("abort", () => {
            aborted = true;
            reject(new Error("aborted"));
          });
        }),
    };
    const agent = await room.enter({ hooks });
    await agent.record(seeded(r1), seeded(r2));
    await room.obeyed("prepare");
    const asked = await room.ask("capture", { scope: [r1] });
    await turns();
    const calls = [agent.record(received(r1, 0)), agent.record(received(r2, 0))];
    const problem = { code: "deadline_exceeded" as const, message: "late" };
    if (how === "resumed") await room.resume();
    else await room.decide({ type: "command.failed", data: { command: 1, problem } });
    await Promise.all(calls);
    expect(aborted).toBe(true);
    const answers = (await room.said()).filter((event) => event.type === "participant.answered");
    expect(answers.filter(({ data }) => data.asked === asked)).toEqual([]);
    await room.resume();
    await room.obeyed("prepare", { checkpointId: "c2", command: 3 });
    await agent.record(started(r2));
    expect(room.troubles).toEqual([]);
  },
);

test("readiness that is lost before the capture is its problem, by name, and the process goes on", async () => {
  const { room, agent } = await roomWith("r1");
  await room.obeyed("prepare");
  await agent.record(started(r1));
  const answer = await room.obeyed("capture", { scope: [r1] });
  expect(answer.problem).toMatchObject({ code: "invalid_phase" });
  await agent.record(received(r1, 0));
  expect(agent.sessions.fixedBy("c1")).toEqual([]);
});

test("a capture leaves in the checkpoint what it fixed itself, nothing of one before it", async () => {
  const { room, agent } = await roomWith("r1", "r2");
  await captured(room, [r1, r2]);
  const problem = { code: "unavailable" as const, message: "the model is away" };
  await room.decide({ type: "command.failed", data: { command: 1, problem } });
  await agent.record({ type: "session.closed", data: r2 });
  await room.obeyed("capture", { command: 2, scope: [r1, r2] });
  const next = await room.enter();
  for (const process of [agent, next]) expect(process.sessions.fixedBy("c1")).toMatchObject([r1]);
});

test("a slow release neither breaks the cut of the next checkpoint nor is ended by it", async () => {
  const room = new Room();
  const releasing = Promise.withResolvers<never[]>();
  let signal: AbortSignal | undefined;
  const agent = await room.enter({
    hooks: {
      release: (_released, given) => {
        signal = given;
        return releasing.promise;
      },
    },
  });
  await agent.record(seeded(r1));
  const released = await room.ask("release", { checkpointId: "c0", command: 9, kept: [] });
  await captured(room);
  const { length } = await room.said();
  releasing.resolve([]);
  await turns();
  expect([signal?.aborted, (await room.said()).length]).toEqual([false, length]);
  await room.cut([r1]);
  expect(await room.answerTo(released)).toMatchObject({ operation: "release" });
});

test("work is let go on while a commit is still writing", async () => {
  const room = new Room();
  const committing = Promise.withResolvers<never[]>();
  const agent = await room.enter({ hooks: { commit: () => committing.promise } });
  await agent.record(seeded(r1));
  await captured(room);
  await room.cut([r1]);
  const commit = await room.ask("commit", { command: 2 });
  await room.obeyed("proceed", { command: 3 });
  await agent.record(received(r1, 0));
  committing.resolve([]);
  expect(await room.answerTo(commit)).not.toHaveProperty("problem");
});

test("[C9] a commit that is still writing at the resume publishes nothing afterwards", async () => {
  const room = new Room();
  const committing = Promise.withResolvers<never[]>();
  const agent = await room.enter({ hooks: { commit: () => committing.promise } });
  await agent.record(seeded(r1));
  await captured(room);
  await room.cut([r1]);
  const commit = await room.ask("commit", { command: 2 });
  await turns();
  await room.decide({ type: "checkpoint.resumed", data: { command: 4, checkpointId: "c1", reason: "command" } });
  await turns();
  committing.resolve([]);
  await room.obeyed("resume", { command: 4 });
  const answers = (await room.said()).filter((event) => event.type === "participant.answered");
  expect(answers.some(({ data }) => data.asked === commit)).toBe(false);
});

test("[C11] a prepare that waits is over with the resume, and a late one for that id closes nothing", async () => {
  const { room, agent } = await roomWith("r1");
  await agent.record(started(r1));
  const waiting = await room.ask("prepare");
  await turns();
  expect(agent.admission.isClosed).toBe(true);
  await room.resume();
  expect(agent.admission.isClosed).toBe(false);
  const late = await room.ask("prepare");
  await turns();
  expect(agent.admission.isClosed).toBe(false);
  const answers = (await room.said()).filter((event) => event.type === "participant.answered");
  expect(answers.filter(({ data }) => [waiting, late].includes(data.asked))).toEqual([]);
});

test("[A4] a prepare that is not ready by its deadline names what blocks, with reason and age", async () => {
  const { room, agent } = await roomWith("r1", "r2");
  await agent.record(started(r1));
  const answer = await room.obeyed("prepare", { remainingMs: 0 });
  expect(answer).toMatchObject({
    problem: { code: "deadline_exceeded" },
    blockerCount: 1,
    blockers: [{ ...r1, reason: "running" }],
  });
  expect(agent.admission.isClosed).toBe(true);
});

test("[A20] an answer that no message can hold is a problem that says so, and the process goes on obeying", async () => {
  const { room, agent } = await roomWith();
  const long = "r".repeat(120);
  const episodes = Array.from({ length: 8_000 }, (_, at) => episodeOf(`${long}-${at}`));
  for (let from = 0; from < episodes.length; from += 1_000) {
    await agent.record(...episodes.slice(from, from + 1_000).map(seeded));
  }
  const { problem } = await room.obeyed("prepare");
  expect(problem).toMatchObject({ code: "invalid_request", details: { episodes: 8_000, limit: 1_000_000 } });
  expect(problem?.message).toContain("take shorter rollout ids");
  await room.resume();
  expect(agent.admission.isClosed).toBe(false);
});

test("hooks are told of each closing and opening, once and in order", async () => {
  const room = new Room();
  const told: string[] = [];
  await room.enter({ hooks: { closed: (id) => told.push(`closed ${id}`), opened: () => told.push("opened") } });
  await captured(room, []);
  await room.cut([]);
  await room.obeyed("proceed");
  await room.resume();
  await room.obeyed("prepare", { checkpointId: "c2", command: 2 });
  await room.resume({ checkpointId: "c2", command: 2 });
  expect(told).toEqual(["closed c1", "opened", "closed c2", "opened"]);
});

test.each(["stateless", "restart_only"] as const)(
  "[S11] a %s participant has nothing outside the log: commit and release call no hook of its",
  async (mode) => {
    const room = new Room();
    const called: string[] = [];
    const hook = (name: string) => async () => {
      called.push(name);
      return [];
    };
    await room.enter({ mode, hooks: { commit: hook("commit"), release: hook("release") } });
    await room.obeyed("prepare");
    await room.obeyed("capture", { scope: [] });
    await room.cut([]);
    expect(await room.obeyed("commit")).not.toHaveProperty("problem");
    await room.resume();
    expect(await room.obeyed("release", { kept: ["c1"] })).not.toHaveProperty("problem");
    expect(called).toEqual([]);
  },
);

test("[C14] readiness is asked a thousand times without a look at what blocks", async () => {
  const room = new Room();
  let looks = 0;
  let blocked = true;
  const agent = await room.enter({
    hooks: { blockers: () => (looks++, blocked ? [{ ...r1, reason: "x", sinceMs: 1 }] : []) },
  });
  for (let at = 0; at < 50; at++) await agent.record(seeded(episodeOf(`s${at}`)), started(episodeOf(`s${at}`)));
  const asked = await room.ask("prepare");
  await turns();
  const before = looks;
  for (let at = 0; at < 1_000; at++) agent.changed();
  await turns();
  expect(looks).toBe(before); // a running session answers the question before the hook is asked
  for (let at = 0; at < 50; at++) await agent.record({ type: "session.closed", data: episodeOf(`s${at}`) });
  blocked = false;
  agent.changed();
  expect(await room.answerTo(asked)).toMatchObject({ blockerCount: 0 });
});
