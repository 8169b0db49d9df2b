/** The close of a session that is not there yet. */
import { expect, test } from "vitest";
import { episodeOf, seeded, turns } from "./room.ts";
import { Desk, refusal } from "./seed-desk.ts";

const r1 = episodeOf("r1");
const r2 = episodeOf("r2");

test("a close reaches a session whose first seed is in flight, and awaits it: nothing is left", async () => {
  const desk = new Desk();
  const agent = await desk.open();
  const seeding = desk.seed(r1);
  await turns(2);
  const closing = desk.call("close", r1);
  await turns(2);
  desk.seeding.resolve();
  expect(await closing).toEqual({ ok: true, data: { awaited: true } });
  expect(await seeding).toMatchObject({ ok: true });
  expect(agent.sessions.all()).toEqual([]);
});

test("a close calls off a first seed that is held: it makes no session when admission opens", async () => {
  const desk = new Desk();
  const agent = await desk.open();
  desk.seeding.resolve();
  await desk.room.obeyed("prepare");
  const seeds = [desk.seed(r1), desk.seed(r1), desk.seed(r2)];
  await turns();
  expect(await desk.call("close", r1)).toEqual({ ok: true, data: { awaited: false } });
  await desk.room.resume();
  expect(await Promise.all(seeds)).toMatchObject([refusal("stale_attempt"), refusal("stale_attempt"), { ok: true }]);
  expect(agent.sessions.all()).toMatchObject([r2]);
});

test("a close calls off a repeated seed that is held: what was closed is not seeded again", async () => {
  const desk = new Desk();
  const agent = await desk.open();
  desk.seeding.resolve();
  await agent.record(seeded(r1));
  await desk.room.obeyed("prepare");
  const seeding = desk.seed(r1);
  await turns();
  expect(await desk.call("close", r1)).toMatchObject({ ok: true });
  await desk.room.resume();
  expect(await seeding).toMatchObject(refusal("stale_attempt"));
  expect(agent.sessions.all()).toEqual([]);
});

test("a close of what was never seeded finds nothing", async () => {
  const desk = new Desk();
  await desk.open();
  expect(await desk.call("close", r1)).toMatchObject(refusal("not_found"));
});
