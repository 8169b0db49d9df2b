import { expect, test } from "vitest";
import { controlFacts } from "../src/demo/checkpoints.ts";
import { rolloutFacts, type RolloutFacts } from "../src/demo/rollouts.ts";
import { checkpoint, digest, restore, TestEpisode, TestStream } from "./stream.ts";

async function factsOf(stream: TestStream): Promise<readonly RolloutFacts[]> {
  const history = await stream.history();
  expect(history.problems).toEqual([]);
  return rolloutFacts(history, controlFacts(history.control).restores);
}

async function only(stream: TestStream): Promise<RolloutFacts> {
  const [facts] = await factsOf(stream);
  if (facts === undefined) throw new Error("no rollout");
  return facts;
}

async function begun(): Promise<{ stream: TestStream; episode: TestEpisode }> {
  const stream = new TestStream();
  const episode = new TestEpisode(stream, "g0-r0");
  await episode.open();
  await episode.activate();
  return { stream, episode };
}

test("an undisturbed rollout counts each of its calls, and none of them as given up", async () => {
  const { stream, episode } = await begun();
  await episode.call(0);
  await episode.tool(0, "x1");
  await episode.call(1);
  await episode.end(8000);

  const facts = await only(stream);

  expect(facts).toMatchObject({ finalAttempt: 0, status: "finished", reward: 1, abandonedCalls: 0, abandonedTools: 0 });
  expect(facts.calls.map(({ turn, response }) => [turn, response])).toEqual([
    [0, digest("answer 0")],
    [1, digest("answer 1")],
  ]);
  expect(facts.tools.map(({ execution }) => execution)).toEqual(["x1"]);
  expect(facts.faults).toEqual([]);
  expect(facts.workedMs).toBe(10_000); // eleven messages, a second apart, from the opening to the verdict
});

test("a restored rollout counts what its first attempt did up to the cut, and what its second did", async () => {
  const { stream, episode } = await begun();
  await episode.call(0);
  const cut = await checkpoint(stream, "c1", [episode.episode]);
  await episode.tool(0, "lost");
  await episode.call(1, "given up");
  await restore(stream, { source: "c1", cut, assignments: [{ rollout: "g0-r0", from: 0, to: 1 }] });
  episode.attempt = 1;
  await episode.open();
  await episode.tool(0, "kept");
  await episode.call(1);
  await episode.end(0);

  const facts = await only(stream);

  expect(facts.finalAttempt).toBe(1);
  expect(facts.tools.map(({ execution }) => execution)).toEqual(["kept"]);
  expect(facts.calls.map(({ response }) => response)).toEqual([digest("answer 0"), digest("answer 1")]);
  expect(facts).toMatchObject({ abandonedCalls: 1, abandonedTools: 1, faults: [] });
  expect(facts.attempts.map(({ end, from }) => [end, from])).toEqual([
    ["abandoned", null],
    ["finished", { attempt: 0, source: "c1" }],
  ]);
});

test("a step before the cut that the replacement does again is a fault", async () => {
  const { stream, episode } = await begun();
  await episode.call(0);
  await episode.tool(0, "x1");
  const cut = await checkpoint(stream, "c1", [episode.episode]);
  await restore(stream, { source: "c1", cut, assignments: [{ rollout: "g0-r0", from: 0, to: 1 }] });
  episode.attempt = 1;
  await episode.open();
  await episode.tool(0, "x2");
  await episode.end(0);

  const { faults } = await only(stream);

  expect(faults).toEqual([
    "g0-r0, turn 0, call 0: the execution counts more than once",
    "g0-r0, turn 0, call 0: the result that the agent received counts more than once",
  ]);
});

test("an answer that the model finished and the agent never received is no row of the ledger", async () => {
  const { stream, episode } = await begun();
  await episode.finishCall(0, "never received");
  await episode.call(0, "received");
  await episode.end(0);

  const facts = await only(stream);

  expect(facts.calls.map(({ response }) => response)).toEqual([digest("received")]);
  expect(facts).toMatchObject({ abandonedCalls: 1, faults: [] });
});

test("an answer that no model gave is a fault", async () => {
  const { stream, episode } = await begun();
  await stream.say("agent", {
    type: "call.received",
    data: { ...episode.episode, turn: 0, response: { digest: digest("made up"), bytes: 7, text: "made up" } },
  });
  await episode.end(0);

  expect((await only(stream)).faults).toEqual([
    "g0-r0, turn 0: the ledger has no row with the answer that the agent received",
  ]);
});

test("time that was parked is not counted as worked", async () => {
  const { stream, episode } = await begun();
  const parking = { ...episode.episode, checkpointId: "c1" };
  await stream.say("agent", { type: "session.parked", data: parking });
  stream.nowMs += 60_000;
  await stream.say("agent", { type: "session.unparked", data: parking });
  await episode.call(0);
  await episode.end(0);

  const { workedMs, attempts } = await only(stream);

  expect(attempts[0]?.parked).toHaveLength(1);
  expect(workedMs).toBe(7000);
});

test("the time in which a process was down is not counted as worked", async () => {
  const { stream, episode } = await begun();
  const lastAtMs = stream.nowMs;
  stream.nowMs += 30_000;
  const named = { role: "agent", instance: "main", worker: "0", incarnation: "agent-2", mode: "exported" };
  const announced = { announcedSequence: 9, announcedAtMs: stream.nowMs, lastAtMs, endpoint: null };
  await stream.say("control", { type: "participant.joined", data: { ...named, ...announced } });
  await episode.call(0);
  await episode.end(0);

  expect((await only(stream)).workedMs).toBe(7000);
});

test("a downtime that shows only after the end was charged, and is counted as worked", async () => {
  const { stream, episode } = await begun();
  const lastAtMs = stream.nowMs;
  await episode.call(0);
  await episode.end(0);
  const named = { role: "model", instance: "main", worker: "0", incarnation: "model-2", mode: "exported" };
  const announced = { announcedSequence: 9, announcedAtMs: stream.nowMs, lastAtMs, endpoint: null };
  await stream.say("control", { type: "participant.joined", data: { ...named, ...announced } });

  expect((await only(stream)).workedMs).toBe(6000);
});

test("an attempt that was left counts up to its last sample, and its replacement from when it was opened", async () => {
  const { stream, episode } = await begun();
  await stream.say("environment", { type: "episode.charged", data: { ...episode.episode, chargedMs: 2000 } });
  const cut = await checkpoint(stream, "c1", [episode.episode]);
  stream.nowMs += 60_000;
  await restore(stream, { source: "c1", cut, assignments: [{ rollout: "g0-r0", from: 0, to: 1 }] });
  episode.attempt = 1;
  await episode.open();
  await episode.call(0);
  await episode.end(0);

  expect((await only(stream)).workedMs).toBe(2000 + 5000);
});

test("a checkpoint tells its cut, its scope, and when work was let go on", async () => {
  const { stream, episode } = await begun();
  const cut = await checkpoint(stream, "c1", [episode.episode]);

  const { checkpoints } = controlFacts((await stream.history()).control);

  expect(checkpoints).toMatchObject([{ checkpointId: "c1", cut, scope: [episode.episode] }]);
  expect((checkpoints[0]?.letGoAtMs ?? 0) - (checkpoints[0]?.openedAtMs ?? 0)).toBe(3000);
});
