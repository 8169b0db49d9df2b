/** What a session can be continued with: asked for when a checkpoint is taken, kept until a newer one was recorded. */
import { type AgentParticipant, type AgentSession, defineAgent, messageText } from "@holdpoint/participant";
import type { Episode } from "@holdpoint/schemas";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import * as z from "zod";
import { AgentRoom, ask, jsonOf, until } from "./agent-room.ts";
import { episodeOf, turns } from "./room.ts";

const r1 = episodeOf("r1");
const r2 = episodeOf("r2");
const r3 = episodeOf("r3");
const Step = z.object({ step: z.number() });

let room: AgentRoom;
beforeEach(async () => {
  room = await AgentRoom.open();
});
afterEach(() => room.model.stop());

/** With what activations went on, in order. */
let continued: unknown[] = [];

/** Takes a slot, then steps: a model call each, and a boundary after it. */
function stepping(slots?: number) {
  continued = [];
  const activate = async (session: AgentSession<unknown>) => {
    continued.push(session.continuation);
    const from = session.continuation === undefined ? 0 : Step.parse(session.continuation).step;
    await using slot = await session.slot();
    for (let step = from; step < 8; step++) {
      await session.model(ask(`step ${step}`));
      await session.boundary(() => ({ step: step + 1 }));
    }
    slot.release();
    return "done";
  };
  return defineAgent({
    name: "stepper",
    mode: "exported",
    seed: z.unknown(),
    activate,
    ...(slots !== undefined && { slots }),
  });
}

/** Whether the model was asked this turn by the attempt. */
function hasAsked({ rollout, attempt }: Episode, turn: number): boolean {
  return room.model.asked.some(({ turn: asked, headers }) => {
    const isIts = headers["x-holdpoint-rollout"] === rollout && headers["x-holdpoint-attempt"] === String(attempt);
    return isIts && asked === turn;
  });
}

/** Answers up to the turn before `turn`, and holds that one. */
async function untilAwaits(episode: Episode, turn: number): Promise<void> {
  room.model.holds = (asked) => asked >= turn;
  room.model.letGo();
  await until(() => hasAsked(episode, turn));
  await turns();
}

/** What checkpoint c1, which is over, holds of r1 after four steps: restored as attempt 1, in a process with one slot. */
async function fourStepsOn() {
  const agent = await room.agent(stepping(1));
  await room.seed(r1);
  void room.activate(r1);
  await untilAwaits(r1, 4);
  const cut = await room.checkpoint([r1], "c1", 1);
  expect(await exportedOf("c1", r1)).toEqual([{ step: 4 }]);
  await room.letGo("c1", 1);
  await room.done("retire", { command: 2, checkpointId: null, rollouts: [r1] });
  const again = await room.restored({ id: "x1", command: 3, source: "c1", cut, from: r1, to: 1 });
  await room.letGo("x1", 3);
  return { agent, again };
}

/** The boundaries of an episode that went into the log for a checkpoint. */
async function exportedOf(checkpointId: string, episode: Episode): Promise<readonly unknown[]> {
  const said = await room.saidOf(episode);
  return said.flatMap((event) =>
    event.type === "boundary.exported" && event.data.checkpointId === checkpointId
      ? [jsonOf(event.data.boundary.text)]
      : [],
  );
}

/** With what a checkpoint would have the session continued. */
function heldBy(agent: AgentParticipant, checkpointId: string, episode: Episode): unknown {
  const { continuation } = agent.sessions.fixedIn(checkpointId, episode)?.state ?? {};
  return continuation && [continuation.turn, jsonOf(continuation.boundary.text)];
}

describe("[S1] a session restored with boundary {step: 4}", () => {
  test("holds exactly that while it waits for a slot, a fresh one that waits holds none, and a second restore gives the same", async () => {
    const { agent, again } = await fourStepsOn();
    await room.seed(r2);
    void room.activate(r2);
    await untilAwaits(r2, 2); // it has the slot
    await room.seed(again);
    void room.activate(again);
    await room.seed(r3);
    void room.activate(r3);
    await turns();
    expect(continued).toEqual([undefined, undefined, { step: 4 }, undefined]);
    const cut = await room.checkpoint([again, r2, r3], "c2", 4);
    expect(heldBy(agent, "c2", again)).toEqual([4, { step: 4 }]);
    expect(heldBy(agent, "c2", r3)).toBeNull();
    expect(heldBy(agent, "c2", r2)).toEqual([2, { step: 2 }]);
    expect(await exportedOf("c2", r3)).toEqual([]);
    await room.letGo("c2", 4);

    await room.done("retire", { command: 5, checkpointId: null, rollouts: [again, r2, r3] });
    for (const [command, to] of [
      [6, 2],
      [7, 3],
    ] as const) {
      const next = await room.restored({ id: `x${command}`, command, source: "c2", cut, from: again, to });
      await room.letGo(`x${command}`, command);
      await room.seed(next);
      void room.activate(next);
      await untilAwaits(next, 4);
      expect(continued.at(-1)).toEqual({ step: 4 });
      expect(hasAsked(next, 3)).toBe(false);
      await room.done("retire", { command: command + 10, checkpointId: null, rollouts: [next] });
    }
  });

  test("holds exactly that while it awaits the model, and {step: 5} once that was recorded", async () => {
    const { agent, again } = await fourStepsOn();
    await room.seed(again);
    void room.activate(again);
    await untilAwaits(again, 4);
    await room.checkpoint([again], "c2", 4);
    expect([heldBy(agent, "c2", again), await exportedOf("c2", again)]).toEqual([[4, { step: 4 }], []]);
    await room.letGo("c2", 4);

    await untilAwaits(again, 5);
    await room.checkpoint([again], "c3", 5);
    expect(heldBy(agent, "c3", again)).toEqual([5, { step: 5 }]);
    await room.letGo("c3", 5);
    await untilAwaits(again, 5);
    await room.checkpoint([again], "c4", 6);
    expect([heldBy(agent, "c4", again), await exportedOf("c4", again)]).toEqual([[5, { step: 5 }], []]);
    await room.letGo("c4", 6);
    expect(agent.sessions.get(again)?.state.steps).toEqual({ recent: [], before: null }); // what was before is not needed
  });

  test("holds it before any activation has taken it", async () => {
    const { agent, again } = await fourStepsOn();
    await room.checkpoint([again], "c2", 4);
    expect(heldBy(agent, "c2", again)).toEqual([4, { step: 4 }]);
  });
});

test("[L9] a process that comes after a checkpoint goes on from what it exported, and the turns since are answered from the log", async () => {
  const before = await room.agent(stepping());
  await room.seed(r1);
  void room.activate(r1);
  await untilAwaits(r1, 2);
  await room.checkpoint([r1], "c1", 1);
  await room.letGo("c1", 1);
  await untilAwaits(r1, 5);
  await before.stop();
  room.model.holds = () => false;
  const asked = room.model.asked.length;
  const agent = await room.agent(stepping());
  room.model.letGo();
  await until(() => agent.sessions.get(r1)?.state.output !== null);
  expect(continued).toEqual([{ step: 2 }]);
  expect(room.model.asked.slice(asked).map(({ turn }) => turn)).toEqual([5, 6, 7]);
});

test("a boundary between two tool calls goes on between them", async () => {
  let isSecond = false;
  const definition = defineAgent({
    name: "halfway",
    mode: "exported",
    seed: z.unknown(),
    activate: async (session) => {
      if (session.continuation === undefined) {
        await session.model(ask());
        await session.tool("look", "1");
        await session.boundary(() => "halfway");
      }
      const [second, third] = [await session.tool("look", "2"), await session.tool("look", "3")];
      await session.model(ask(second, third));
      return `${JSON.stringify(session.continuation)}: ${second}, ${third}`;
    },
  });
  room.model.holds = (turn) => turn === 1 && !isSecond;
  const before = await room.agent(definition);
  await room.seed(r1);
  void room.activate(r1);
  await until(() => hasAsked(r1, 1));
  await room.checkpoint([r1], "c1", 1);
  await room.letGo("c1", 1);
  await before.stop();
  isSecond = true;
  const agent = await room.agent(definition);
  await until(() => agent.sessions.get(r1)?.state.output !== null);
  expect(agent.sessions.get(r1)?.state.output?.text).toBe('"halfway": look: 2, look: 3');
  expect(room.tools).toEqual(["look(1) as 0/0", "look(2) as 0/1", "look(3) as 0/2"]);
});

test("[C13] no boundary is evaluated, and nothing is appended for it, while no checkpoint is open", async () => {
  let evaluated = 0;
  const definition = defineAgent({
    name: "counter",
    mode: "exported",
    seed: z.unknown(),
    activate: async (session) => {
      for (let turn = 0; turn < 5; turn++) {
        await session.boundary(() => (evaluated += 1));
        await session.model(ask());
      }
      return "done";
    },
  });
  await room.agent(definition);
  await room.run(r1);
  expect(evaluated).toBe(0);
  const types = await room.typesOf(r1);
  expect(types).toHaveLength(2 + 5 * 2 + 1);
});

test("a boundary that cannot be given fails the capture, which says whose, and work goes on", async () => {
  const definition = defineAgent({
    name: "careless",
    mode: "exported",
    seed: z.unknown(),
    activate: async (session) => {
      await session.boundary(() => Promise.reject(new Error("not now")));
      return messageText(await session.model(ask()));
    },
  });
  room.model.holds = () => true;
  await room.agent(definition);
  await room.seed(r1);
  const ended = room.activate(r1);
  await until(() => room.model.asked.length === 1);
  room.model.close();
  await room.done("prepare", {});
  const { problem } = await room.obeyed("capture", { scope: [r1] });
  room.model.holds = () => false;
  expect(problem).toMatchObject({
    code: "invalid_checkpoint_state",
    message: expect.stringMatching(/r1, attempt 0/),
  });
  expect(JSON.stringify(await room.said())).not.toMatch(/not now/); // [F10]
  expect(room.troubles.join()).toMatch(/r1, attempt 0.*not now/);
  await room.letGo("c1", 1);
  expect(await ended).toMatchObject({ data: { status: "ended" } });
});

test("a boundary that is never given fails the capture at its deadline", async () => {
  const definition = defineAgent({
    name: "endless",
    mode: "exported",
    seed: z.unknown(),
    activate: async (session) => {
      await session.boundary(() => new Promise(() => {}));
      return messageText(await session.model(ask()));
    },
  });
  room.model.holds = () => true;
  await room.agent(definition);
  await room.seed(r1);
  void room.activate(r1);
  await until(() => room.model.asked.length === 1);
  room.model.close();
  await room.done("prepare", {});
  const { problem } = await room.obeyed("capture", { scope: [r1], remainingMs: 50 });
  expect(problem).toMatchObject({ code: "deadline_exceeded" });
});
