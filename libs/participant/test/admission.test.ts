import { expect, test } from "vitest";
import { episodeOf, Room, seeded, started, turns } from "./room.ts";
import { Desk, refusal } from "./seed-desk.ts";

const r1 = episodeOf("r1");

test("[S8] [S9] [S17] hundreds of first seeds in flight when admission closes are restarts, and nobody waits for them", async () => {
  const desk = new Desk();
  const agent = await desk.open();
  const episodes = Array.from({ length: 300 }, (_, at) => episodeOf(`r${at}`));
  const seeds = episodes.map((episode) => desk.seed(episode));
  await turns(2);
  expect(await desk.room.obeyed("prepare")).toMatchObject({ blockerCount: 0, restarts: episodes, continued: [] });
  desk.seeding.resolve();
  await Promise.all(seeds);
  expect(await desk.room.obeyed("capture", { scope: [] })).toMatchObject({ sessions: 0 });
  await desk.room.cut([]);
  await desk.room.resume();
  const next = await desk.room.obeyed("prepare", { checkpointId: "c2", command: 2 });
  expect(next).toMatchObject({ blockerCount: 0, restarts: [], continued: episodes });
  expect(agent.sessions.all().length).toBe(300);
});

test("[S9] an episode whose first seed was in flight runs on: it never parks, and what it says is not waited for", async () => {
  const desk = new Desk();
  const agent = await desk.open();
  const seeding = desk.seed(r1);
  await turns(2);
  await desk.room.obeyed("prepare");
  desk.seeding.resolve();
  await seeding;
  await agent.record(started(r1));
  await agent.boundary(r1);
  expect(await desk.room.obeyed("capture", { scope: [] })).not.toHaveProperty("problem");
});

test("[C1] two seeds of a session that exists block until both are done", async () => {
  const desk = new Desk();
  const agent = await desk.open();
  await agent.record(seeded(r1));
  const seeds = [desk.seed(r1), desk.seed(r1)];
  await turns(2);
  const asked = await desk.room.ask("prepare");
  await turns();
  expect(agent.admission.blockers()).toMatchObject([
    { ...r1, reason: "seed in flight" },
    { ...r1, reason: "seed in flight" },
  ]);
  desk.seeding.resolve();
  await Promise.all(seeds);
  expect(await desk.room.answerTo(asked)).toMatchObject({ blockerCount: 0, continued: [r1] });
});

test("a request that is held is not in flight: it blocks nothing, and starts when admission opens", async () => {
  const desk = new Desk();
  const agent = await desk.open();
  desk.calling.resolve();
  await agent.record(seeded(r1));
  await desk.room.obeyed("prepare");
  const call = desk.call("tool", r1, { to: "main", name: "ls" });
  const seeding = desk.seed(episodeOf("r2"));
  await turns();
  expect(await desk.room.obeyed("capture", { scope: [r1] })).toMatchObject({ sessions: 1 });
  await desk.room.cut([r1]);
  await desk.room.obeyed("proceed");
  expect(await call).toEqual({ ok: true, data: { done: true } });
  desk.seeding.resolve();
  expect(await seeding).toMatchObject({ ok: true });
});

test("a call in flight blocks until its result is in the log", async () => {
  const desk = new Desk();
  const agent = await desk.open();
  await agent.record(seeded(r1));
  const call = desk.call("tool", r1, { to: "main", name: "ls" });
  await turns(2);
  const asked = await desk.room.ask("prepare");
  await turns();
  expect(agent.gate.asks.length).toBe(1);
  desk.calling.resolve();
  await call;
  expect(await desk.room.answerTo(asked)).toMatchObject({ continued: [r1] });
  expect(agent.sessions.get(r1)?.state.calls).toBe(1);
});

test("while admission is closed new work is refused, and clean-up goes through", async () => {
  const desk = new Desk();
  const agent = await desk.open();
  await agent.record(seeded(r1));
  await desk.room.obeyed("prepare");
  expect(await desk.call("start", r1)).toEqual(refusal("admission_closed"));
  expect(await desk.call("close", r1)).toMatchObject({ ok: true });
});

test("[S7] a restart never parks, and is never waited for", async () => {
  const desk = new Desk();
  const agent = await desk.open();
  const why = "its sandbox cannot snapshot";
  await agent.record(seeded(r1), started(r1), { type: "session.restart_marked", data: { ...r1, why } });
  expect(await desk.room.obeyed("prepare")).toMatchObject({ blockerCount: 0, restarts: [r1], continued: [] });
  await agent.boundary(r1);
});

test("[S7] what is in flight of a restart is not waited for, neither a call nor what a hook names, and also where it is marked meanwhile", async () => {
  const desk = new Desk();
  const agent = await desk.open({ blockers: () => [{ ...r1, reason: "by the hook", sinceMs: 0 }] });
  await agent.record(seeded(r1));
  const call = desk.call("tool", r1, { to: "main", name: "ls" });
  await turns(2);
  const asked = await desk.room.ask("prepare");
  await turns();
  expect(agent.gate.asks.length).toBe(1);
  await agent.record({ type: "session.restart_marked", data: { ...r1, why: "its sandbox is gone" } });
  expect(await desk.room.answerTo(asked)).toMatchObject({ blockerCount: 0, restarts: [r1], continued: [] });
  expect(await desk.room.obeyed("capture", { scope: [] })).toMatchObject({ sessions: 0 });
  await desk.room.cut([]);
  desk.calling.resolve();
  expect(await call).toMatchObject({ ok: true });
});

test("[A4] readiness that is lost as soon as it was seen is waited for again, until the deadline", async () => {
  const desk = new Desk();
  let asked = 0;
  const blockers = () => {
    asked += 1;
    return asked === 2 ? [{ ...r1, reason: "again", sinceMs: 0 }] : [];
  };
  await desk.open({ blockers });
  expect(await desk.room.obeyed("prepare")).toMatchObject({ blockerCount: 0, blockers: [] });
});

test("[C3] a participant that only restarts is ready at once, names its sessions, parks none, and captures an empty scope", async () => {
  const room = new Room();
  const agent = await room.enter({ mode: "restart_only" });
  await agent.record(seeded(r1), started(r1));
  expect(await room.obeyed("prepare")).toMatchObject({ blockerCount: 0, restarts: [r1], continued: [] });
  await agent.boundary(r1);
  expect(await room.obeyed("capture", { scope: [] })).toMatchObject({ sessions: 0 });
});

test("[C2] a retirement waits for the seed in flight, which frees what it built and is answered stale_attempt", async () => {
  const desk = new Desk();
  const agent = await desk.open();
  const seeding = desk.seed(r1);
  await turns(2);
  await desk.room.decide({ type: "rollouts.marked", data: { command: 2, rollouts: [r1] } });
  const asked = await desk.room.ask("retire", { command: 2, checkpointId: null, rollouts: [r1] });
  await turns();
  expect(agent.gate.asks.length).toBe(1);
  desk.seeding.resolve();
  expect(await seeding).toMatchObject(refusal("stale_attempt"));
  expect(await desk.room.answerTo(asked)).not.toHaveProperty("problem");
  expect([desk.freed, agent.sessions.all()]).toEqual([["r1"], []]);
});

test("[C2] a session whose seed was recorded just before its retirement is retired with it", async () => {
  const desk = new Desk();
  const agent = await desk.open();
  const seeding = desk.seed(r1);
  await turns(2);
  desk.seeding.resolve();
  await desk.room.decide({ type: "rollouts.marked", data: { command: 2, rollouts: [r1] } });
  await desk.room.obeyed("retire", { command: 2, checkpointId: null, rollouts: [r1] });
  await seeding;
  expect(agent.sessions.all()).toEqual([]);
});

test("a retired attempt, and all before it, are refused for good; the next attempt is not", async () => {
  const desk = new Desk();
  const agent = await desk.open();
  desk.seeding.resolve();
  await agent.record(seeded(episodeOf("r1", 1)));
  await desk.room.decide({ type: "rollouts.marked", data: { command: 2, rollouts: [episodeOf("r1", 1)] } });
  await desk.room.obeyed("retire", { command: 2, checkpointId: null, rollouts: [episodeOf("r1", 1)] });
  for (const attempt of [0, 1]) {
    expect(await desk.seed(episodeOf("r1", attempt))).toMatchObject(refusal("stale_attempt"));
    expect(await desk.call("close", episodeOf("r1", attempt))).toMatchObject(refusal("stale_attempt"));
    await expect(agent.boundary(episodeOf("r1", attempt))).rejects.toMatchObject({ code: "stale_attempt" });
  }
  expect(await desk.seed(episodeOf("r1", 2))).toMatchObject({ ok: true });
});

test("[A15] a seed that fails before there is a session poisons nothing", async () => {
  const desk = new Desk();
  const agent = await desk.open();
  const failing = desk.seed(r1);
  await turns(2);
  desk.seeding.reject(new Error("no sandbox"));
  expect(await failing).toMatchObject(refusal("unavailable"));
  await agent.record(seeded(episodeOf("r2")));
  expect(await desk.room.obeyed("prepare")).toMatchObject({
    blockerCount: 0,
    restarts: [],
    continued: [episodeOf("r2")],
  });
  expect(await desk.room.obeyed("capture", { scope: [episodeOf("r2")] })).toMatchObject({ sessions: 1 });
});

test("[A15] what a method throws that has no code stays here: its caller is told nothing of its text, nor is the log", async () => {
  const desk = new Desk();
  await desk.open();
  const failing = desk.seed(r1);
  await turns(2);
  desk.seeding.reject(new Error("https://there/?key=sk-secret"));
  expect(JSON.stringify(await failing)).not.toContain("secret");
  expect(desk.room.troubles.join()).toContain("sk-secret");
  expect(JSON.stringify(await desk.room.said())).not.toContain("secret");
});

test("[A16] continuation traffic that reaches a process without the session is refused", async () => {
  const desk = new Desk();
  await desk.open();
  expect(await desk.call("tool", r1, { to: "main", name: "ls" })).toMatchObject(refusal("not_found"));
});

test("[A17] what is for another instance is left to it", async () => {
  const desk = new Desk();
  const agent = await desk.open();
  const seed = episodeOf("seed");
  await agent.record(seeded(r1));
  let answered = 0;
  const count = () => void (answered += 1);
  void desk.call("close", r1, { to: "other" }).then(count);
  void desk.call("close", episodeOf("r2"), {}).then(count);
  void desk.call("close", seed, {}).then(count);
  await turns();
  expect(answered).toBe(0);
  expect(await desk.call("close", r1, {})).toMatchObject({ ok: true });
});

test.each([
  ["no rollout", "hp.room.rpc.seed.agent.main", {}, "rollout_id_required"],
  ["an attempt that is no number", "hp.room.rpc.r1.x.agent.tool", { to: "main" }, "rollout_id_required"],
  ["a body that is no JSON", "hp.room.rpc.r1.0.agent.tool", "{", "invalid_request"],
  ["a method that there is not", "hp.room.rpc.r1.0.agent.fly", { to: "main" }, "invalid_request"],
  [
    "a body that the method does not take",
    "hp.room.rpc.r1.0.agent.tool",
    { to: "main", nome: "ls" },
    "invalid_request",
  ],
])("[A2] %s is answered with a typed error, and recorded", async (_, subject, body, code) => {
  const desk = new Desk();
  const agent = await desk.open();
  await agent.record(seeded(r1));
  expect(await desk.room.request(subject, body)).toMatchObject(refusal(code));
  await turns();
  expect((await desk.room.said()).at(-1)).toMatchObject({
    type: "input.refused",
    data: { subject, problem: { code } },
  });
});

test("a flood of malformed requests is answered, and does not fill the log: the rest is counted", async () => {
  const desk = new Desk();
  await desk.open();
  const flood = () => desk.room.request("hp.room.rpc.seed.agent.main", "x".repeat(10_000));
  for (let at = 0; at < 500; at++) await flood();
  await turns();
  const refused = async () => (await desk.room.said()).filter(({ type }) => type === "input.refused");
  expect((await refused()).length).toBe(20);
  desk.room.laterMs = 60_000;
  await flood();
  await turns();
  expect((await refused()).at(-1)).toMatchObject({ data: { problem: { details: { unrecorded: 480 } } } });
  expect((await desk.room.messages()).every((events) => JSON.stringify(events).length < 20_000)).toBe(true);
});
