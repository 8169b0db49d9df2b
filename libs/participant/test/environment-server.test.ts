/** Dispatches, and how an episode comes from its first seed to its end, whoever is asked again. */
import { defineEnvironment } from "@holdpoint/participant";
import { Token } from "@holdpoint/schemas";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { Room, stagesIn } from "./environment-room.ts";

async function ended(): Promise<Room> {
  const room = new Room();
  await room.servants();
  await room.enter();
  await room.dispatch("r1");
  await room.until("episode.ended");
  return room;
}

test("an episode goes through its stages, each bookmarked before it runs, and ends with the verdict", async () => {
  const room = await ended();
  const said = await room.said();
  expect(stagesIn(said)).toEqual(["seed", "invoke_agent", "close_agent", "verify", "return"]);
  expect(said.at(-1)).toMatchObject({ type: "episode.ended", data: { status: "finished", reward: 1, why: null } });
  expect(room.asked.slice(0, 5)).toEqual([
    "resources seed r1/0",
    "agent seed r1/0",
    "agent activate r1/0",
    "agent close r1/0",
    "resources verify r1/0",
  ]);
});

describe("the same dispatch again", () => {
  test("of an episode that runs changes nothing", async () => {
    const room = new Room();
    await room.enter();
    expect(await room.dispatch("r1")).toEqual({ ok: true, data: {} });
    expect(await room.dispatch("r1")).toEqual({ ok: true, data: {} });
    expect((await room.said()).map(({ type }) => type)).toEqual(["episode.opened", "episode.bookmarked"]);
  });

  test("of an episode that has ended opens it no second time, also in the process that comes after a crash", async () => {
    const room = await ended();
    const before = await room.log.lastSequence();
    expect(await room.dispatch("r1")).toEqual({ ok: true, data: {} });
    expect(await room.log.lastSequence()).toBe(before);
    const successor = await room.enter();
    const announced = await room.log.lastSequence();
    await room.dispatch("r1");
    expect([await room.log.lastSequence(), successor.sessions.all()]).toEqual([announced, []]);
  });

  test("with another task is refused while it runs", async () => {
    const room = new Room();
    await room.enter();
    await room.dispatch("r1");
    expect(await room.dispatch("r1", { task: "something else" })).toMatchObject({ ok: false });
  });
});

test("rollouts with long names have sessions of their own, each with one id for all its attempts", async () => {
  const room = new Room();
  await room.servants();
  await room.enter();
  const long = "x".repeat(126);
  for (const rollout of [long, `${long}aa`, `${long}bb`]) await room.dispatch(rollout);
  await room.turns();
  const ids = room.requests.flatMap(({ what, body }) => (what.startsWith("resources seed") ? [body["sessionId"]] : []));
  expect([ids[0], new Set(ids).size]).toEqual([`s-${long}`, 3]);
  for (const id of ids) expect(Token.parse(id)).toBe(id);
});

/** What a dispatch is told that comes while a checkpoint is open, which is resumed then. */
async function dispatchedWhileClosed(room: Room): Promise<unknown> {
  await room.servants();
  await room.enter();
  await room.obeyed("prepare", "c1");
  const dispatched = room.dispatch("r1");
  await room.turns();
  expect(room.asked).toEqual([]);
  await room.resume("c1");
  return dispatched;
}

describe("a dispatch that comes while a checkpoint is open", () => {
  test("is refused", async () => {
    expect(await dispatchedWhileClosed(new Room())).toMatchObject({ problem: { code: "admission_closed" } });
  });

  test("is held until resume where the environment is in no checkpoint", async () => {
    const room = new Room(defineEnvironment({ name: "plain", task: z.json() }));
    expect(await dispatchedWhileClosed(room)).toEqual({ ok: true, data: {} });
    expect(await room.ending()).toMatchObject({ status: "finished", reward: 1 });
  });
});

test("another attempt of a rollout that still runs is refused: one is live at a time", async () => {
  const room = new Room();
  await room.enter();
  await room.dispatch("r1");
  expect(await room.dispatch("r1", { attempt: 1 })).toMatchObject({ ok: false, problem: { code: "session_conflict" } });
});

test("[L9] after a crash in the middle of the activation the successor goes on from there, under the same attempt", async () => {
  const room = new Room();
  room.replies = { ...room.replies, activate: undefined };
  await room.servants();
  const first = await room.enter();
  await room.dispatch("r1");
  while (!room.asked.includes("agent activate r1/0")) await new Promise((resolve) => void setImmediate(resolve));
  await first.stop();

  room.replies = { ...room.replies, activate: new Room().replies["activate"] };
  room.asked.length = 0;
  await room.enter();
  const said = await room.until("episode.ended");
  expect(room.asked.slice(0, 3)).toEqual(["agent activate r1/0", "agent close r1/0", "resources verify r1/0"]);
  expect(stagesIn(said)).toEqual(["seed", "invoke_agent", "close_agent", "verify", "return"]);
});

test("a verdict without a reward fails the episode, and is no reward of zero", async () => {
  const room = new Room();
  room.replies = { ...room.replies, verify: { verdict: { digest: "0".repeat(64), bytes: 2, text: "{}" } } };
  await room.servants();
  await room.enter();
  await room.dispatch("r1");
  const end = (await room.until("episode.ended")).at(-1);
  expect(end?.data).toMatchObject({ reward: null });
  expect(end?.data).not.toMatchObject({ status: "finished" });
});
