/** Slots: how many activations of a process run at once, and what becomes of them around a checkpoint. */
import { type AgentSession, defineAgent, messageText, type Slot } from "@holdpoint/participant";
import type { Episode } from "@holdpoint/schemas";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import * as z from "zod";
import { AgentRoom, ask, until } from "./agent-room.ts";
import { episodeOf, turns } from "./room.ts";

const [r1, r2, r3] = [episodeOf("r1"), episodeOf("r2"), episodeOf("r3")];

let room: AgentRoom;
/** Who had a slot, in order. */
let served: string[];
/** What each holds its slot for. */
let work: Map<string, PromiseWithResolvers<void>>;
beforeEach(async () => {
  room = await AgentRoom.open();
  served = [];
  work = new Map();
});
afterEach(() => room.model.stop());

function workOf(rollout: string): PromiseWithResolvers<void> {
  const known = work.get(rollout) ?? Promise.withResolvers<void>();
  work.set(rollout, known);
  return known;
}

/** Works inside a slot for as long as its test says, then asks the model. */
function working(options: { readonly capturable?: () => string } = {}) {
  return defineAgent({
    name: "worker",
    mode: "exported",
    seed: z.unknown(),
    slots: 1,
    ...options,
    activate: async (session) => {
      await using slot = await session.slot();
      served.push(session.episode.rollout);
      await Promise.race([workOf(session.episode.rollout).promise, aborted(session.signal)]);
      const answer = await session.model(ask());
      slot.release();
      return messageText(answer);
    },
  });
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(new Error("stopped")), { once: true });
  });
}

/** Seeds and activates, one after the other. */
async function begin(...episodes: readonly Episode[]): Promise<void> {
  for (const episode of episodes) {
    await room.seed(episode);
    void room.activate(episode);
    await turns();
  }
}

/** The slot is there: somebody who comes now has it, when whoever came before is done. */
async function expectServed(episode: Episode): Promise<void> {
  await begin(episode);
  await until(() => served.includes(episode.rollout));
}

test("slots are given in the order in which they were asked for, one owner each", async () => {
  await room.agent(working());
  await begin(r1, r2, r3);
  expect(served).toEqual(["r1"]);
  workOf("r1").resolve();
  await until(() => served.length === 2);
  workOf("r2").resolve();
  await until(() => served.length === 3);
  expect(served).toEqual(["r1", "r2", "r3"]);
});

test("a session that waits for a slot keeps nobody from a checkpoint, and is parked in it", async () => {
  await room.agent(working());
  await begin(r1, r2);
  const asked = await room.ask("prepare");
  await turns();
  expect(await room.typesOf(r2)).toContain("session.parked");
  room.model.close();
  workOf("r1").resolve();
  expect(await room.answerTo(asked)).toMatchObject({ blockerCount: 0, continued: [r1, r2] });
  await room.letGo("c1", 1);
  await until(() => served.includes("r2"));
});

test("a slot that is granted while a checkpoint is open starts nothing before it is resumed", async () => {
  await room.agent(working());
  await begin(r1, r2);
  await room.ask("prepare");
  await turns();
  await room.call(r1, "close");
  await turns();
  expect(served).toEqual(["r1"]);
  await room.letGo("c1", 1);
  await until(() => served.length === 2);
  expect(served).toEqual(["r1", "r2"]);
});

describe("a slot goes back", () => {
  test("[S6] where its session is closed while it parks with it", async () => {
    await room.agent(working());
    await begin(r1, r2);
    await room.ask("prepare");
    await turns();
    await room.call(r1, "close");
    await turns();
    expect(await room.typesOf(r2)).toContain("session.parked");
    await room.call(r2, "close");
    await room.letGo("c1", 1);
    await expectServed(r3);
    expect(served).toEqual(["r1", "r3"]);
  });

  test("[S6] where its session is retired while it parks with it, in restored", async () => {
    await room.agent(working());
    room.model.holds = () => true;
    await begin(r1);
    workOf("r1").resolve();
    await until(() => room.model.asked.length === 1);
    const cut = await room.checkpoint([r1], "c1", 1);
    await room.letGo("c1", 1);
    await room.done("retire", { command: 2, checkpointId: null, rollouts: [r1] });
    served = [];

    const again = await room.restored({ id: "x1", command: 3, source: "c1", cut, from: r1, to: 1 });
    void room.activate(again);
    await until(async () => (await room.typesOf(again)).includes("session.parked"));
    expect(served).toEqual([]); // granted, and not begun
    await room.done("retire", { command: 4, checkpointId: "x1", rollouts: [again] });
    await room.letGo("x1", 3);
    await expectServed(r2);
  });

  test("where its session is closed while it waits in the line", async () => {
    await room.agent(working());
    await begin(r1, r2, r3);
    await room.call(r2, "close");
    workOf("r1").resolve();
    await until(() => served.includes("r3"));
    expect(served).toEqual(["r1", "r3"]);
  });

  test("where its session is closed while it waits in the line, though its author goes on with something else", async () => {
    const definition = defineAgent({
      name: "stubborn",
      mode: "exported",
      seed: z.unknown(),
      slots: 1,
      activate: async (session) => {
        const slot = await session.slot().catch(() => undefined);
        served.push(`${session.episode.rollout} ${slot === undefined ? "has none" : "has one"}`);
        await workOf(session.episode.rollout).promise;
        return "done";
      },
    });
    await room.agent(definition);
    await begin(r1, r2, r3);
    const closing = room.call(r2, "close");
    await until(() => served.includes("r2 has none"));
    workOf("r1").resolve();
    await until(() => served.includes("r3 has one"));
    workOf("r2").resolve();
    expect(await closing).toMatchObject({ ok: true });
  });

  test.each([
    ["throws", () => Promise.reject(new Error("no"))],
    ["forgets it", async () => "done"],
  ])("where its owner %s", async (_, end) => {
    const definition = defineAgent({
      name: "careless",
      mode: "exported",
      seed: z.unknown(),
      slots: 1,
      activate: async (session) => {
        await session.slot();
        served.push(session.episode.rollout);
        return end();
      },
    });
    await room.agent(definition);
    await room.run(r1);
    await room.run(r2);
    expect(served).toEqual(["r1", "r2"]);
  });

  test("at once where it is asked for and not waited for", async () => {
    const definition = defineAgent({
      name: "hasty",
      mode: "exported",
      seed: z.unknown(),
      slots: 1,
      activate: async (session) => {
        void session.slot().catch(() => {});
        return "done";
      },
    });
    await room.agent(definition);
    for (const episode of [r1, r2, r3]) {
      expect(await room.run(episode)).toMatchObject({ data: { status: "ended" } });
    }
  });
});

test("an activation that has a slot is refused a second one", async () => {
  const definition = defineAgent({
    name: "greedy",
    mode: "exported",
    seed: z.unknown(),
    slots: 2,
    activate: async (session) => {
      await session.slot();
      await session.slot();
      return "done";
    },
  });
  await room.agent(definition);
  expect(await room.run(r1)).toMatchObject({
    problem: { code: "invalid_request", message: expect.stringMatching(/has its slot/) },
  });
});

test("[S7] a restart gets its slot while a checkpoint is open, runs on, and never parks", async () => {
  await room.agent(working({ capturable: () => "its harness cannot be paused" }));
  await begin(r1, r2);
  const prepared = await room.done("prepare", {});
  expect(prepared).toMatchObject({ blockerCount: 0, restarts: [r1, r2], continued: [] });
  room.model.close(); // it answers restarts all the same
  workOf("r1").resolve();
  await until(() => served.includes("r2"));
  workOf("r2").resolve();
  await until(async () => (await room.typesOf(r2)).includes("activation.ended"));
  for (const episode of [r1, r2]) expect(await room.typesOf(episode)).not.toContain("session.parked");
  await room.letGo("c1", 1);
});

/** Asks the model inside a slot, again and again. */
function asking() {
  return defineAgent({
    name: "asking",
    mode: "exported",
    seed: z.unknown(),
    slots: 1,
    activate: async (session: AgentSession<unknown>) => {
      for (let turn = 0; turn < 2; turn++) {
        await using slot = await session.slot();
        await session.model(ask());
        served.push(`${session.episode.rollout} ${turn}`);
        slot.release();
      }
      return "done";
    },
  });
}

describe("in the process that comes after", () => {
  test("what the log has needs no slot, and what comes then waits for one", async () => {
    room.model.holds = () => true;
    const before = await room.agent(asking());
    await begin(r1, r2);
    room.model.holds = (turn) => turn === 1;
    room.model.letGo();
    await until(() => served.length === 2);
    await until(() => room.model.asked.length === 3);
    await before.stop();
    served = [];
    const agent = await room.agent(asking());
    await until(() => room.model.asked.length === 4);
    await turns();
    expect(served).toEqual(["r1 0", "r2 0"]);
    expect(room.model.asked.length).toBe(4); // one of them
    room.model.holds = () => false;
    room.model.letGo();
    await until(() => agent.sessions.all().every(({ state }) => state.output !== null));
  });

  test("[L5] whoever had asked the model is not held up by who waits for a slot while a checkpoint is open", async () => {
    room.model.holds = () => true;
    const before = await room.agent(asking());
    await begin(r1, r2);
    await until(() => room.model.asked.length === 1);
    await before.stop();
    const asked = await room.ask("prepare");
    const agent = await room.agent(asking());
    await until(() => room.model.asked.length === 2);
    expect(room.model.asked[1]?.headers["x-holdpoint-rollout"]).toBe("r1");
    room.model.close();
    expect(await room.answerTo(asked)).toMatchObject({ blockerCount: 0 });
    room.model.holds = () => false;
    await room.letGo("c1", 1);
    await until(() => agent.sessions.all().every(({ state }) => state.output !== null));
  });
});

test("a slot can be given back before its owner is done, and another one taken", async () => {
  let free: Slot | undefined;
  const definition = defineAgent({
    name: "thrifty",
    mode: "exported",
    seed: z.unknown(),
    slots: 1,
    activate: async (session) => {
      free = await session.slot();
      free.release();
      free.release();
      await using slot = await session.slot();
      return slot === free ? "the same" : "done";
    },
  });
  await room.agent(definition);
  expect(await room.run(r1)).toMatchObject({ data: { status: "ended" } });
  expect(await room.run(r2)).toMatchObject({ data: { status: "ended" } });
});
