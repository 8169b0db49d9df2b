/** What of an episode is done again after a restore, and what a checkpoint may say of one that is being seeded. */
import { describe, expect, test } from "vitest";
import { Room, roomOf, stagesIn } from "./environment-room.ts";

const r1 = { rollout: "r1", attempt: 0 };
const again = { rollout: "r1", attempt: 1 };
const restart = "its harness cannot be stopped";

/** What resources and agent say when they are seeded. */
const lent = { terms: { sandboxLent: true, verify: "replay" }, restart: null };
const granting = (token: string) => {
  return { terms: { grantsBound: true, verify: "replay" }, restart: null, access: { token, expiresAtMs: 1 } };
};
const rebinding = { terms: { rebinds: true }, restart: null };
const direct = { terms: { verify: "replay" }, restart: null };

/** What is asked of a server in the step of each bookmark. */
const work: Readonly<Record<string, string>> = {
  invoke_agent: "agent activate",
  close_agent: "agent close",
  verify: "resources verify",
};
/** The bookmark behind each. */
const next: Readonly<Record<string, string>> = {
  "agent activate": "close_agent",
  "agent close": "verify",
  "resources verify": "return",
};

interface Said {
  readonly resources: object;
  readonly agent?: object;
}

/** r1 runs up to `step`, which is in flight. */
async function at(step: string, { resources, agent = rebinding }: Said, room = new Room()): Promise<Room> {
  room.replies = { ...room.replies, "resources seed": resources, "agent seed": agent, [step]: undefined };
  await room.servants();
  await room.enter();
  await room.dispatch("r1");
  await room.untilAsked(`${step} r1/0`);
  return room;
}

/**
 * r1 is restored as it stood at the bookmark `stage`: a checkpoint was open while the step before was done. Its first attempt went
 * no further than the step behind that bookmark.
 */
async function restoredAt(stage: string, said: Said): Promise<Room> {
  const before = Object.keys(next).find((step) => next[step] === stage);
  const here = work[stage] ?? "";
  const room = await at(before ?? here, said);
  const prepared = room.obeyed("prepare", "c1");
  await room.turns();
  room.replies[here] = undefined;
  if (before !== undefined) {
    room.replies[before] = new Room().replies[before.split(" ")[1] ?? ""];
    room.answer();
  }
  expect(await prepared).toMatchObject({ blockerCount: 0, continued: [r1] });
  await room.turns();
  const { cut } = await room.capture("c1", [r1]);
  expect(stagesIn(await room.said()).at(-1)).toBe(stage);
  await room.resume("c1");
  expect(await room.restore("x1", { source: "c1", cut })).toMatchObject({ installed: [again] });
  for (const step of Object.keys(next)) delete room.replies[step];
  room.asked.length = 0;
  room.requests.length = 0;
  return room;
}

/** The replacement runs to its end. @returns what was asked of the servers until then, but for the cleanup */
async function goneOn(room: Room): Promise<readonly string[]> {
  await room.dispatch("r1", { attempt: 1 });
  expect(await room.ending(1)).toMatchObject({ ...again, status: "finished", reward: 1 });
  return room.asked.slice(0, -1);
}

const seeds = ["resources seed r1/1", "agent seed r1/1"];
const rest = ["agent activate r1/1", "agent close r1/1", "resources verify r1/1"];

describe("[S2] with grants bound to the attempt, and an agent that re-binds, a restore", () => {
  test.each([
    ["invoke_agent", rest],
    ["close_agent", rest.slice(1)],
  ] as const)("at %s seeds both again inside the step, before its work", async (stage, asked) => {
    const room = await restoredAt(stage, { resources: granting("first-secret") });
    room.replies["resources seed"] = granting("second-secret");
    expect(await goneOn(room)).toEqual([...seeds, ...asked]);
    expect(room.requests[1]?.body["access"]).toEqual({ token: "second-secret", expiresAtMs: 1 });
  });

  test.each([
    ["verify", rest.slice(2)],
    ["return", []],
  ] as const)("at %s seeds nobody", async (stage, asked) => {
    expect(await goneOn(await restoredAt(stage, { resources: granting("secret") }))).toEqual(asked);
  });
});

test("[S2] with direct tools only a restore seeds nobody: the activation goes on", async () => {
  expect(await goneOn(await restoredAt("invoke_agent", { resources: direct }))).toEqual(rest);
});

test("[S2] with grants bound, and an agent that does not re-bind, the episode is a restart, and says why", async () => {
  const room = await at("agent activate", { resources: granting("secret"), agent: { terms: {}, restart: null } });
  expect(await room.obeyed("prepare", "c1")).toMatchObject({ blockerCount: 0, restarts: [r1], continued: [] });
  expect((await room.said()).find(({ type }) => type === "session.restart_marked")?.data).toEqual({
    ...r1,
    why: "its grants are bound to the attempt, and its agent does not re-bind",
  });
});

test("a re-seed gives each server the seed that it had: run says it again", async () => {
  const room = roomOf(async (episode) => {
    await episode.seed({ resources: { hidden: 7 }, agent: "go" });
    await episode.invokeAgent();
    await episode.closeAgent();
    return { reward: (await episode.verify()).reward };
  });
  await at("agent activate", { resources: lent }, room);
  const first = room.requests.slice(0, 2).map(({ body }) => body);
  await room.obeyed("prepare", "c1");
  const { cut } = await room.capture("c1", [r1]);
  await room.resume("c1");
  await room.restore("x1", { source: "c1", cut });
  room.replies["agent activate"] = new Room().replies["activate"];
  room.requests.length = 0;
  await room.dispatch("r1", { attempt: 1 });
  await room.ending(1);
  expect(room.requests.slice(0, 2).map(({ body }) => body)).toEqual(first.map((body) => ({ ...body, attempt: 1 })));
});

test("[F10] access goes from the resources server to the agent, also at a re-seed, and is written nowhere", async () => {
  const room = await restoredAt("invoke_agent", { resources: granting("first-secret") });
  room.replies["resources seed"] = granting("second-secret");
  room.replies["agent seed"] = undefined;
  await room.dispatch("r1", { attempt: 1 });
  await room.untilAsked("agent seed r1/1");
  room.replies["agent seed"] = { problem: { code: "session_conflict", message: "no" } };
  room.answer();
  expect(await room.ending(1)).toMatchObject({ status: "failed" });
  const stored: string[] = [];
  await room.log.read({ upTo: await room.log.lastSequence(), subjects: ["hp.>"] }, ({ body }) => {
    stored.push(new TextDecoder().decode(body));
  });
  expect(JSON.stringify(room.requests)).toContain("second-secret");
  expect(stored.length).toBeGreaterThan(10);
  expect([...stored, ...room.lines].join("\n")).not.toContain("secret");
});

describe("[S10] an episode whose resources server lends a sandbox", () => {
  test("has that in the bookmark behind its seed", async () => {
    const room = await at("agent activate", { resources: lent });
    const bookmarks = (await room.said()).filter(({ type }) => type === "episode.bookmarked");
    expect(bookmarks.at(-1)?.data).toEqual({
      ...r1,
      stage: "invoke_agent",
      terms: { verify: "replay", rebinds: true, sandboxLent: true, grantsBound: false },
    });
  });

  test("seeds both servers again once it is restored, and is ready for a checkpoint meanwhile", async () => {
    const room = await restoredAt("invoke_agent", { resources: lent });
    room.replies["resources seed"] = undefined;
    await room.dispatch("r1", { attempt: 1 });
    await room.untilAsked("resources seed r1/1");
    expect(await room.obeyed("prepare", "c2")).toMatchObject({ blockerCount: 0, restarts: [], continued: [again] });
    await room.capture("c2", [again]);
    await room.resume("c2");
    room.replies["resources seed"] = lent;
    room.answer();
    await room.ending(1);
    expect(room.asked.slice(0, 3)).toEqual([...seeds, "agent activate r1/1"]);
  });
});

test("[S20] an episode restored behind its verify returns what was found, and asks nobody again", async () => {
  const room = await restoredAt("return", { resources: lent });
  expect(await goneOn(room)).toEqual([]);
  expect(room.asked).toEqual(["resources close r1/1"]);
});

describe("a checkpoint that opens while an episode is seeded", () => {
  test.each([
    ["[S8]", "the agent's seed is in flight", "agent seed"],
    ["[S9]", "the resources server's seed is in flight, before the mark", "resources seed"],
  ])("%s %s: says that it restarts, and holds nothing of it, whatever the seeds say later", async (_, __, step) => {
    const room = await at(step, { resources: lent });
    room.replies["activate"] = undefined;
    expect(await room.obeyed("prepare", "c1")).toMatchObject({ blockerCount: 0, restarts: [r1], continued: [] });
    room.replies[step] = { terms: { sandboxLent: true }, restart };
    room.answer();
    await room.until("session.restart_marked");
    const { answer } = await room.capture("c1", []);
    expect(answer).toMatchObject({ sessions: 0 });
    await room.resume("c1");
    const said = (await room.said()).map(({ type }) => type);
    expect(said).not.toContain("session.captured");
    expect(said.indexOf("session.restart_marked")).toBeLessThan(said.lastIndexOf("episode.bookmarked"));
    expect(await room.obeyed("prepare", "c2")).toMatchObject({ restarts: [r1], continued: [] });
  });

  test("[S9] holds it once it is seeded and can be captured", async () => {
    const room = await at("agent seed", { resources: lent });
    await room.obeyed("prepare", "c1");
    await room.capture("c1", []);
    room.replies["agent seed"] = rebinding;
    room.replies["activate"] = undefined;
    room.answer();
    await room.resume("c1");
    await room.untilAsked("agent activate r1/0");
    expect(await room.obeyed("prepare", "c2")).toMatchObject({ restarts: [], continued: [r1] });
    expect((await room.capture("c2", [r1])).answer).toMatchObject({ sessions: 1 });
  });

  test("a re-seed that says that the session restarts marks it before the step goes on", async () => {
    const room = await restoredAt("invoke_agent", { resources: lent });
    room.replies["resources seed"] = { ...lent, restart };
    room.replies["activate"] = undefined;
    await room.dispatch("r1", { attempt: 1 });
    await room.untilAsked("agent activate r1/1");
    expect(await room.obeyed("prepare", "c2")).toMatchObject({ restarts: [again], continued: [] });
  });
});

test("[A12] a later attempt is refused while a continuation waits to be dispatched, and that attempt goes through", async () => {
  const room = await restoredAt("invoke_agent", { resources: lent });
  const refusal = { code: "session_conflict", message: expect.stringContaining("attempt 1 of r1 was restored") };
  expect(await room.dispatch("r1", { attempt: 2 })).toMatchObject({ ok: false, problem: refusal });
  expect(room.asked).toEqual([]);
  expect(await goneOn(room)).toEqual([...seeds, ...rest]);
});

test("a continuation that is dispatched with another task is refused, and waits on", async () => {
  const room = await restoredAt("invoke_agent", { resources: lent });
  const refused = await room.dispatch("r1", { attempt: 1, task: "something else" });
  expect(refused).toMatchObject({ ok: false, problem: { code: "session_conflict" } });
  expect(await goneOn(room)).toEqual([...seeds, ...rest]);
});

test("while run computes between two steps a checkpoint is ready at once, and the next step waits for its end", async () => {
  const { promise: computed, resolve: compute } = Promise.withResolvers<undefined>();
  const room = roomOf(async (episode) => {
    await episode.seed();
    await computed;
    await episode.invokeAgent();
    await episode.closeAgent();
    return { reward: (await episode.verify()).reward };
  });
  await room.servants();
  await room.enter();
  await room.dispatch("r1");
  while (!stagesIn(await room.said()).includes("invoke_agent")) await room.turns(1);
  expect(await room.obeyed("prepare", "c1")).toMatchObject({ blockerCount: 0, continued: [r1] });
  compute(undefined);
  await room.until("session.parked");
  expect((await room.capture("c1", [r1])).answer).toMatchObject({ sessions: 1 });
  await room.turns();
  expect(room.asked).not.toContain("agent activate r1/0");
  await room.resume("c1");
  expect(await room.ending()).toMatchObject({ status: "finished", reward: 1 });
});

test("[A15] a seed that fails fails its episode, and later checkpoints hold the others", async () => {
  const room = new Room();
  room.replies = { ...room.replies, activate: undefined };
  room.replies["resources seed"] = { problem: { code: "invalid_request", message: "no such package" } };
  await room.servants();
  await room.enter();
  await room.dispatch("r1");
  expect(await room.ending()).toMatchObject({ ...r1, status: "failed", reward: null, why: "no such package" });
  room.replies["resources seed"] = lent;
  await room.dispatch("r2");
  await room.untilAsked("agent activate r2/0");
  const r2 = { rollout: "r2", attempt: 0 };
  expect(await room.obeyed("prepare", "c1")).toMatchObject({ blockerCount: 0, restarts: [], continued: [r2] });
  expect((await room.capture("c1", [r2])).answer).toMatchObject({ sessions: 1 });
});
