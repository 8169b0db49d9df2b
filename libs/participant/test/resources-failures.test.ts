/** What becomes of a session when its author's functions fail, or when what they gave cannot be kept. */
import { HoldpointError } from "@holdpoint/errors";
import { defineResources } from "@holdpoint/participant";
import { MemoryBlobs } from "@holdpoint/testing";
import { afterEach, describe, expect, test, vi } from "vitest";
import * as z from "zod";
import { counterWith, type Parts, Shelf } from "./resources-counter.ts";
import { episodeOf, ResourcesRoom } from "./resources-room.ts";

const episode = episodeOf("r");
const secret = "sk-secret";
const leaky = new Error(`GET https://judge.example/?key=${secret} failed`);

async function seeded(resources = counterWith()) {
  const room = new ResourcesRoom();
  const served = await room.serve(resources);
  await room.seed(episode);
  return { room, served };
}

/** What a caller is told. */
function told(answer: Promise<unknown>): Promise<string> {
  return answer.then(
    (value) => JSON.stringify(value),
    (error: unknown) => `${HoldpointError.is(error) ? error.code : "?"} ${String(error)}`,
  );
}

const large = "x".repeat(100_000); // it rests beside the log
const once = async () => ({ result: large });

/** A session whose call 0/0, of a tool that may not run again, was executed, and whose result could not be written. */
async function unwritten(parts: Parts) {
  const { room } = await seeded(counterWith(parts));
  const full = new HoldpointError("unavailable", "the store is full");
  vi.spyOn(MemoryBlobs.prototype, "put").mockRejectedValueOnce(full);
  await expect(room.tool(episode, "0/0", "once")).rejects.toMatchObject({ code: "unavailable" });
  return room;
}

/** A schema that takes this word, and has to ask. */
function later(known: string) {
  return z.strictObject({ word: z.string().refine(async (word) => word === known) });
}

afterEach(() => vi.restoreAllMocks());

describe("a result that cannot be written", () => {
  test("[L3] of a tool that does not repeat: the call is not executed again, and its session is a restart", async () => {
    const executed = vi.fn<typeof once>(once);
    const room = await unwritten({ once: executed });
    await expect(room.tool(episode, "0/0", "once")).rejects.toMatchObject({ code: "invalid_checkpoint_state" });
    await expect(room.tool(episode, "0/0", "once")).rejects.toMatchObject({ code: "invalid_checkpoint_state" });
    expect(executed).toHaveBeenCalledTimes(1);
    expect(await room.events("session.restart_marked")).toMatchObject([
      { why: expect.stringContaining("0/0 of once") },
    ]);
    expect(await room.asked("prepare", { checkpointId: "c1" })).toMatchObject({ restarts: [episode] });
  });

  test("[L3] leaves no session on which another call, or a verify, goes on as if nothing had been done", async () => {
    const called = await unwritten({ once });
    await expect(called.tool(episode, "1/0", "add", { by: 1 })).rejects.toMatchObject({
      code: "invalid_checkpoint_state",
    });
    const judged = await unwritten({ once });
    await expect(judged.verify(episode)).rejects.toMatchObject({ code: "invalid_checkpoint_state" });
    expect(await judged.events("verify.finished")).toEqual([]);
  });
});

describe("[F10] what an author's function throws", () => {
  test("is in no event and no reply, and in the log of the process", async () => {
    const fails = async () => Promise.reject(leaky);
    const external = new Shelf();
    const { room } = await seeded(counterWith({ adding: fails, once: fails, verify: { run: fails }, external }));
    const answers = [await told(room.tool(episode, "0/0", "add", { by: 1 })), await told(room.verify(episode))];
    vi.spyOn(external, "capture").mockRejectedValueOnce(leaky);
    answers.push(JSON.stringify((await room.capture("c1", [episode])).answer));
    await room.resume("c1");
    answers.push(await told(room.tool(episode, "0/1", "once")), JSON.stringify(await room.seed(episode)));
    answers.push(await told(room.tool(episode, "0/1", "once")));

    expect(await room.events("session.restart_marked")).toHaveLength(1);
    expect(answers.filter((answer) => answer.includes(secret))).toEqual([]);
    expect(await room.text()).not.toContain(secret);
    expect(room.troubles.filter((trouble) => trouble.includes(secret))).toHaveLength(4);
    expect(answers[0]).toContain("the tool add of counter threw: the log of its process says what");
  });

  test("is in no event and no reply either where a session is set up", async () => {
    const external = new Shelf();
    vi.spyOn(external, "open").mockRejectedValue(leaky);
    const refusing = () => Promise.reject(leaky);
    for (const parts of [{ external }, { state: { open: refusing, evolve: refusing } }] as const) {
      const room = new ResourcesRoom();
      await room.serve(counterWith(parts as Parts));
      expect(await told(room.seed(episode))).not.toContain(secret);
      expect(await room.text()).not.toContain(secret);
      expect(room.troubles).toEqual([expect.stringContaining(secret)]);
    }
  });

  test("is not why a session is a restart whose recorded changes the definition does not fold", async () => {
    const { room, served } = await seeded();
    await room.tool(episode, "0/0", "add", { by: 1 });
    await served.stop();
    const state = {
      open: () => ({ count: 0 }),
      evolve: () => {
        throw leaky;
      },
    };
    await room.serve(counterWith({ state }));
    const answer = await told(room.verify(episode));
    expect(answer).toContain("cannot be folded");
    expect(`${answer} ${await room.text()}`).not.toContain(secret);
  });
});

describe("[F7] a plain exception", () => {
  test("of verify.run is no reason to ask again", async () => {
    const run = vi.fn<() => Promise<{ reward: number }>>().mockRejectedValue(new TypeError("verdict is undefined"));
    const { room } = await seeded(counterWith({ verify: { run } }));
    await expect(room.verify(episode)).rejects.toMatchObject({
      code: "invalid_request",
      message: "verify.run of counter threw: the log of its process says what",
    });
    expect(room.troubles).toEqual([expect.stringContaining("verdict is undefined")]);
  });

  test("of external.open is no reason to ask again, and what it had set up is freed", async () => {
    const external = new Shelf();
    vi.spyOn(external, "open").mockRejectedValue(new TypeError("no such database"));
    const room = new ResourcesRoom();
    await room.serve(counterWith({ external }));
    await expect(room.seed(episode)).rejects.toMatchObject({ code: "invalid_request" });
    expect(external.calls).toEqual(["free r/0"]);
    expect(room.troubles).toEqual([expect.stringContaining("no such database")]);
  });

  test("is told apart from an error of ours, which goes out as it is and may ask for another try", async () => {
    const busy = new HoldpointError("unavailable", "the judge is busy");
    const run = vi.fn<() => Promise<{ reward: number }>>().mockRejectedValueOnce(busy);
    const external = new Shelf();
    vi.spyOn(external, "open").mockRejectedValueOnce(new HoldpointError("unavailable", "the database starts"));
    const room = new ResourcesRoom();
    await room.serve(counterWith({ external, verify: { run: run.mockResolvedValue({ reward: 1 }) } }));
    await expect(room.seed(episode)).rejects.toMatchObject({ code: "unavailable", message: "the database starts" });
    await room.seed(episode);
    await expect(room.verify(episode)).rejects.toMatchObject({ code: "unavailable", message: "the judge is busy" });
    expect(await room.verify(episode)).toEqual({ reward: 1 });
    expect(room.troubles).toEqual([]);
  });
});

describe("a schema that takes time", () => {
  test("is waited for, in a seed, in a call and at a restore", async () => {
    const slow = defineResources({
      name: "slow",
      mode: "exported",
      seed: later("seed"),
      tools: {
        say: { description: "says it", input: later("call"), run: async ({ input: { word } }) => ({ result: word }) },
      },
      verify: { run: async ({ seed: { word } }) => ({ reward: word.length }) },
    });
    const room = new ResourcesRoom();
    await room.serve(slow);
    await expect(room.seed(episode, { word: "other" })).rejects.toMatchObject({ code: "invalid_request" });
    await room.seed(episode, { word: "seed" });
    expect(await room.tool(episode, "0/0", "say", { word: "call" })).toBe("call");
    expect(await room.tool(episode, "0/1", "say", { word: "other" })).toMatch(/^error: wrong arguments/);
    const cut = await room.checkpoint("c1", [episode]);
    await room.retire(episode);
    expect(await room.restore("x1", "c1", cut, [episode])).not.toHaveProperty("problem");
    expect(await room.verify(episodeOf("r", 1))).toEqual({ reward: 4 });
  });

  test("and throws refuses the call for good, and leaves the session whole", async () => {
    const check = vi.fn<() => Promise<boolean>>().mockRejectedValue(leaky);
    const broken = defineResources({
      name: "broken",
      mode: "exported",
      seed: z.unknown(),
      tools: {
        say: { description: "says it", input: z.looseObject({}).refine(check), run: async () => ({ result: "said" }) },
        hear: { description: "hears", input: z.looseObject({}), run: async () => ({ result: "heard" }) },
      },
      verify: { run: async () => ({ reward: 1 }) },
    });
    const { room } = await seeded(broken);
    const answers = [await told(room.tool(episode, "0/0", "say")), await told(room.tool(episode, "0/0", "say"))];
    expect(answers[0]).toMatch(/^invalid_request .*tools\.say\.input of broken threw/);
    expect(answers[1]).toBe(answers[0]);
    expect(check).toHaveBeenCalledTimes(1);
    expect(await room.tool(episode, "0/1", "hear")).toBe("heard");
    expect(await room.text()).not.toContain(secret);
  });
});
