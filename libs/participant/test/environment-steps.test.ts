/** What whoever writes an environment may rely on: steps that are done once, and are told what they need to know. */
import { defineEnvironment, type EpisodeRun } from "@holdpoint/participant";
import type { Json } from "@holdpoint/schemas";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { content, played, Room, roomOf, stagesIn } from "./environment-room.ts";

test("run is given the parsed task, the agent's output and the whole verdict, and says the reward", async () => {
  const seen: unknown[] = [];
  const task = z.object({ sum: z.array(z.number()), unit: z.string().default("m") });
  const run = async (episode: EpisodeRun<z.infer<typeof task>>) => {
    const { rollout, sessionId, policyVersion } = episode;
    seen.push({ rollout, sessionId, policyVersion, task: episode.task });
    await episode.seed();
    seen.push(await episode.invokeAgent());
    await episode.closeAgent();
    seen.push(await episode.verify());
    return { reward: 0.25 };
  };
  const room = new Room(defineEnvironment({ name: "sums", mode: "exported", task, run }));
  room.replies["verify"] = { verdict: content('{"reward":1,"passed":3}') };
  await room.servants();
  await room.enter();
  await room.dispatch("r1", { task: { sum: [1, 2] } });
  expect(await room.ending()).toMatchObject({ status: "finished", reward: 0.25, why: null });
  expect(seen).toEqual([
    { rollout: "r1", sessionId: "s-r1", policyVersion: 0, task: { sum: [1, 2], unit: "m" } },
    "done",
    { reward: 1, passed: 3 },
  ]);
});

test("a task that the schema refuses is refused by name, and opens nothing", async () => {
  const room = new Room(defineEnvironment({ name: "sums", mode: "exported", task: z.object({ sum: z.number() }) }));
  await room.servants();
  await room.enter();
  const refusal = { code: "invalid_request", message: expect.stringMatching(/environment sums[^]*sum/) };
  expect(await room.dispatch("r1", { task: { sum: "2" } })).toMatchObject({ ok: false, problem: refusal });
  await room.turns();
  expect([await room.said(), room.asked]).toEqual([[], []]);
});

test("[A2] a dispatch without a rollout is refused, and opens nothing", async () => {
  const room = new Room();
  await room.enter();
  const body = { attempt: 0, task: 1, agent: "main", resources: "main", budgetMs: null, policyVersion: 0 };
  const reply = await room.request("hp.room.rpc.seed.environment.main", body);
  expect(reply).toMatchObject({ ok: false, problem: { code: "rollout_id_required" } });
  await room.turns();
  expect(await room.said()).toEqual([]);
});

describe("[L9] after a crash", () => {
  test.each([
    ["seed", "resources seed", ["resources seed", "agent seed", "agent activate", "agent close", "resources verify"]],
    ["invoke_agent", "agent activate", ["agent activate", "agent close", "resources verify"]],
    ["close_agent", "agent close", ["agent close", "resources verify"]],
    ["verify", "resources verify", ["resources verify"]],
  ])("in %s the same run goes on there, and what lies behind is asked of nobody again", async (_, step, asked) => {
    const seen: unknown[] = [];
    const room = roomOf(async (episode) => {
      await episode.seed();
      const output = await episode.invokeAgent();
      await episode.closeAgent();
      const { reward } = await episode.verify();
      seen.push({ output, reward });
      return { reward };
    });
    const { [step]: said = room.replies[step.split(" ")[1] ?? ""] } = room.replies;
    room.replies[step] = undefined;
    await room.servants();
    const first = await room.enter();
    await room.dispatch("r1");
    await room.untilAsked(`${step} r1/0`);
    await first.stop();

    room.replies[step] = said;
    room.asked.length = 0;
    await room.enter();
    expect(await room.ending()).toMatchObject({ status: "finished", reward: 1 });
    expect(room.asked).toEqual([...asked, "resources close"].map((what) => `${what} r1/0`));
    expect(stagesIn(await room.said())).toEqual(["seed", "invoke_agent", "close_agent", "verify", "return"]);
    expect(seen).toEqual([{ output: "done", reward: 1 }]);
  });

  test("an output that is too large for the log is read from the blobs", async () => {
    const text = "x".repeat(100_000);
    const sizes: number[] = [];
    const room = roomOf(async (episode) => {
      await episode.seed();
      sizes.push((await episode.invokeAgent()).length);
      await episode.closeAgent();
      return episode.verify().then(({ reward }) => ({ reward }));
    });
    room.replies["activate"] = { status: "ended", output: { digest: await room.blobs.put(text), bytes: text.length } };
    room.replies["agent close"] = undefined;
    await room.servants();
    const first = await room.enter();
    await room.dispatch("r1");
    await room.untilAsked("agent close r1/0");
    await first.stop();
    room.replies["agent close"] = {};
    await room.enter();
    await room.ending();
    expect(sizes).toEqual([100_000, 100_000]);
  });
});

/** What each server was seeded with. */
function seedsOf(room: Room): readonly unknown[] {
  return room.requests.flatMap(({ what, body }) => (what.includes(" seed ") ? [[what, body["seed"]]] : []));
}

describe("seeds", () => {
  test("are the task as it was dispatched, where run says nothing", async () => {
    const room = new Room();
    await played(room);
    expect(seedsOf(room)).toEqual([
      ["resources seed r1/0", "fix it"],
      ["agent seed r1/0", "fix it"],
    ]);
  });

  test("are what run says, for each server", async () => {
    const room = roomOf(async (episode) => {
      await episode.seed({ resources: { hidden: [1] }, agent: "go" });
      await episode.invokeAgent();
      await episode.closeAgent();
      return { reward: (await episode.verify()).reward };
    });
    await played(room);
    expect(seedsOf(room)).toEqual([
      ["resources seed r1/0", { hidden: [1] }],
      ["agent seed r1/0", "go"],
    ]);
  });

  test("have to be JSON", async () => {
    const room = roomOf(async (episode) => {
      await episode.seed({ agent: new Date(0) as unknown as Json });
      return { reward: 1 };
    });
    const why = expect.stringMatching(/environment sums was given what it does not take[^]*JSON[^]*agent/);
    expect(await played(room)).toMatchObject({ status: "failed", why });
    expect(seedsOf(room)).toEqual([]);
  });

  test("are of two servers: a name of no server is refused, and the episode has failed", async () => {
    const refusals: unknown[] = [];
    const room = roomOf(async (episode) => {
      const misspelt: object = { agnet: "go" };
      await episode.seed(misspelt).catch((error: unknown) => refusals.push(error));
      return { reward: 1 };
    });
    const why = expect.stringMatching(/environment sums was given what it does not take[^]*agnet/);
    expect(await played(room)).toMatchObject({ status: "failed", reward: null, why });
    expect(refusals).toMatchObject([{ code: "invalid_request" }]);
    expect(seedsOf(room)).toEqual([]);
  });
});

test("verify is told what the agent came to", async () => {
  const room = new Room();
  await played(room);
  const verifying = room.requests.find(({ what }) => what === "resources verify r1/0");
  expect(verifying?.body).toEqual({ to: "main", output: content("done") });
});
