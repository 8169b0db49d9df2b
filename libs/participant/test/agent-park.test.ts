/** The park signal, and the end of activations by retire and close. */
import { type AgentSession, defineAgent, messageText } from "@holdpoint/participant";
import type { Episode } from "@holdpoint/schemas";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import * as z from "zod";
import { AgentRoom, ask, until } from "./agent-room.ts";
import { episodeOf, turns } from "./room.ts";

const r1 = episodeOf("r1");

let room: AgentRoom;
/** The sessions that activations were given, by episode. */
let sessions: Map<string, AgentSession<unknown>>;
let ends: string[];
beforeEach(async () => {
  room = await AgentRoom.open();
  sessions = new Map();
  ends = [];
});
afterEach(() => room.model.stop());

/** Hands its session to the test, and runs until it is stopped; then it takes as long as `ending` says. */
function standing(options: { capturable?: () => string; ending?: Promise<void> } = {}) {
  const { ending = Promise.resolve(), ...rest } = options;
  return defineAgent({
    name: "standing",
    mode: "exported",
    seed: z.unknown(),
    ...rest,
    activate: async (session) => {
      const { rollout } = session.episode;
      sessions.set(rollout, session);
      await new Promise((resolve) => session.signal.addEventListener("abort", resolve, { once: true }));
      ends.push(`${rollout} stops`);
      await ending;
      ends.push(`${rollout} has stopped`);
      return "never recorded";
    },
  });
}

async function begin(episode: Episode): Promise<AgentSession<unknown>> {
  await room.seed(episode);
  void room.activate(episode);
  await until(() => sessions.has(episode.rollout));
  const session = sessions.get(episode.rollout);
  if (session === undefined) throw new Error("it is there");
  return session;
}

/** Whether the promise has resolved by now. */
async function isResolved(promise: Promise<unknown>): Promise<boolean> {
  let resolved = false;
  void promise.then(() => (resolved = true));
  await turns();
  return resolved;
}

function requested(): readonly boolean[] {
  return [...sessions.values()].map(({ parkRequested }) => parkRequested);
}

describe("the park signal", () => {
  test("is raised by a prepare and cleared by resume, each time anew", async () => {
    await room.agent(standing());
    const session = await begin(r1);
    const first = session.parkSignal;
    expect([session.parkRequested, await isResolved(first)]).toEqual([false, false]);
    await room.ask("prepare");
    expect([await isResolved(first), session.parkRequested]).toEqual([true, true]);
    await room.resume();
    await turns();
    const second = session.parkSignal;
    expect([session.parkRequested, await isResolved(second), second === first]).toEqual([false, false, false]);
    await room.ask("prepare", { checkpointId: "c2", command: 2 });
    expect([await isResolved(second), session.parkRequested]).toEqual([true, true]);
    await room.resume({ checkpointId: "c2", command: 2 });
  });

  test("[A13] of an abandoned checkpoint is gone with it", async () => {
    await room.agent(standing());
    const session = await begin(r1);
    await room.ask("prepare");
    await turns();
    expect(session.parkRequested).toBe(true);
    await room.decide({ type: "checkpoint.resumed", data: { command: 2, checkpointId: "c1", reason: "lease" } });
    await room.obeyed("resume", { command: 2 });
    await room.decide({ type: "resume.ended", data: { command: 2, checkpointId: "c1" } });
    await turns();
    expect([session.parkRequested, await isResolved(session.parkSignal)]).toEqual([false, false]);
  });

  test("is raised for an activation that goes on in a process that comes while admission is closed", async () => {
    const before = await room.agent(standing());
    await begin(r1);
    await room.ask("prepare");
    await before.stop();
    sessions.clear();
    await room.agent(standing());
    await until(() => sessions.has("r1"));
    const session = sessions.get("r1");
    expect([session?.parkRequested, await isResolved(session?.parkSignal ?? new Promise(() => {}))]).toEqual([
      true,
      true,
    ]);
  });

  test("[S16] is raised in every worker, and cleared in every worker", async () => {
    for (const worker of ["0", "1"]) await room.agent(standing(), { worker });
    for (const rollout of ["r1", "r2", "r3", "r4", "r5", "r6"]) await begin(episodeOf(rollout));
    const workers = await Promise.all(["0", "1"].map(async (worker) => (await room.said(1, worker)).length));
    for (const said of workers) expect(said).toBeGreaterThan(1); // each has sessions
    await room.ask("prepare");
    await turns();
    expect(new Set(requested())).toEqual(new Set([true]));
    await room.decide({ type: "checkpoint.resumed", data: { command: 1, checkpointId: "c1", reason: "command" } });
    const resumed = await room.ask("resume");
    await Promise.all(["0", "1"].map((worker) => room.answerTo(resumed, worker)));
    await turns();
    expect(new Set(requested())).toEqual(new Set([false]));
  });

  test("is never raised for a restart", async () => {
    await room.agent(standing({ capturable: () => "it cannot be paused" }));
    const session = await begin(r1);
    await room.ask("prepare");
    expect([await isResolved(session.parkSignal), session.parkRequested]).toEqual([false, false]);
    await room.call(r1, "close");
    expect([await isResolved(session.parkSignal), session.parkRequested]).toEqual([false, false]);
  });

  test.each(["close", "retire"] as const)("is raised by %s", async (how) => {
    await room.agent(standing());
    const session = await begin(r1);
    const { parkSignal } = session;
    if (how === "close") await room.call(r1, "close");
    else await room.done("retire", { command: 2, checkpointId: null, rollouts: [r1] });
    expect([await isResolved(parkSignal), session.parkRequested]).toEqual([true, true]);
  });
});

test("[S7] an activation that is asked for while admission is closed is parked before it begins, and begins after", async () => {
  const definition = defineAgent({
    name: "looking",
    mode: "exported",
    seed: z.unknown(),
    activate: (session) => session.tool("look", "{}"),
  });
  await room.agent(definition);
  await room.seed(r1);
  await room.done("prepare", {});
  const activated = room.activate(r1);
  await until(async () => (await room.typesOf(r1)).includes("session.parked"));
  expect([room.tools, await room.typesOf(r1)]).toEqual([[], ["session.seeded", "session.parked"]]);
  await room.done("capture", { scope: [r1] });
  await room.cut([r1]);
  await room.letGo("c1", 1);
  expect(await activated).toMatchObject({ data: { status: "ended" } });
  expect(room.tools).toEqual(["look({}) as 0/0"]);
});

test("a close whose session goes on in spite of its signal is done after a while, says so, and gives the slot back", async () => {
  const definition = defineAgent({
    name: "deaf",
    mode: "exported",
    seed: z.unknown(),
    slots: 1,
    activate: async (session) => {
      await session.slot();
      sessions.set(session.episode.rollout, session);
      return new Promise(() => {});
    },
  });
  await room.agent(definition, { graceMs: 20 });
  const session = await begin(r1);
  expect(await room.call(r1, "close")).toMatchObject({ ok: true });
  expect((await room.typesOf(r1)).at(-1)).toBe("session.closed");
  expect(room.troubles.join()).toMatch(/agent deaf did not stop its work on r1\/0/);
  await expect(session.tool("look", "{}")).rejects.toMatchObject({ code: "stale_attempt" });
  await begin(episodeOf("r2"));
});

test.each(["close", "retire"] as const)("%s stops an activation once, and waits until it has stopped", async (how) => {
  const ending = Promise.withResolvers<void>();
  await room.agent(standing({ ending: ending.promise }));
  await begin(r1);
  const stop = () =>
    how === "close"
      ? room.call(r1, "close")
      : room.obeyed("retire", { command: 2, checkpointId: null, rollouts: [r1] });
  const stopping = [stop(), how === "close" ? stop() : Promise.resolve()];
  await turns();
  expect(ends).toEqual(["r1 stops"]);
  expect(await room.typesOf(r1)).not.toContain(how === "close" ? "session.closed" : "session.retired");
  ending.resolve();
  await Promise.all(stopping);
  expect(ends).toEqual(["r1 stops", "r1 has stopped"]);
  const types = await room.typesOf(r1);
  expect(types.slice(0, 3)).toEqual([
    "session.seeded",
    "activation.started",
    how === "close" ? "session.closed" : "session.retired",
  ]);
});

test("a retirement whose deadline passes before the activation has stopped says so", async () => {
  await room.agent(standing({ ending: new Promise(() => {}) }));
  await begin(r1);
  const asked = await room.ask("retire", { command: 2, checkpointId: null, rollouts: [r1], remainingMs: 1 });
  expect(await room.answerTo(asked)).toMatchObject({ problem: { code: "deadline_exceeded" } });
});

test("an activation that was closed in the midst of a step throws from it, and appends no more", async () => {
  let thrown: unknown;
  const definition = defineAgent({
    name: "asking",
    mode: "exported",
    seed: z.unknown(),
    activate: async (session) => {
      const answer = await session.model(ask()).catch((error: unknown) => {
        thrown = error;
        throw error;
      });
      return messageText(answer);
    },
  });
  room.model.holds = () => true;
  await room.agent(definition);
  await room.seed(r1);
  void room.activate(r1);
  await until(() => room.model.asked.length === 1);
  await room.call(r1, "close");
  expect(thrown).toMatchObject({ code: "stale_attempt" });
  expect((await room.typesOf(r1)).at(-1)).toBe("session.closed");
});
