/** What authors' functions may say of themselves, and what the log of the process says of those that fail. */
import { type ErrorCode, errorCodes, HoldpointError } from "@holdpoint/errors";
import { containStrays, defineAgent, defineResources, type Resources } from "@holdpoint/participant";
import { afterEach, describe, expect, test } from "vitest";
import * as z from "zod";
import { AgentRoom } from "./agent-room.ts";
import { ask, onlyPolicy, Room as ModelRoom } from "./model-room.ts";
import { counterWith, Shelf } from "./resources-counter.ts";
import { episodeOf, ResourcesRoom } from "./resources-room.ts";
import { episodeOf as agentEpisode } from "./room.ts";

const theirs: readonly ErrorCode[] = [
  "invalid_request",
  "not_found",
  "unauthorized",
  "unavailable",
  "deadline_exceeded",
  "invalid_checkpoint_state",
];
const oursAlone = errorCodes.filter((code) => !theirs.includes(code));
const episode = episodeOf("r");
const secret = "sk-secret";

/** Throws what says that of itself. */
function saying(code: ErrorCode) {
  return () => Promise.reject(new HoldpointError(code, `${code} ${secret}`));
}

function refusing(): never {
  throw new HoldpointError("invalid_request", "not that");
}

function fails(): Promise<never> {
  return Promise.reject(new RangeError("broken"));
}

/** How many listen to what nobody catches in this process. */
function listening(): number[] {
  return [process.listenerCount("unhandledRejection"), process.listenerCount("uncaughtException")];
}

async function seeded(resources: Resources) {
  const room = new ResourcesRoom();
  await room.serve(resources);
  await room.seed(episode);
  return room;
}

const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

async function modelSaying(code: ErrorCode) {
  const room = new ModelRoom();
  stops.push(() => void room.stop());
  return { room, ...(await room.serve(onlyPolicy(saying(code)))) };
}

async function agentOf(activate: () => Promise<string>) {
  const room = await AgentRoom.open();
  stops.push(() => room.model.stop());
  await room.agent(defineAgent({ name: "writer", mode: "exported", seed: z.looseObject({}), activate }));
  return room;
}

describe("[F10] a code that is the SDK's own to say, in the mouth of an author's function, is a bug of it:", () => {
  test.each(oursAlone)(
    "%s of a tool makes the session a restart, of one that repeats it is unavailable",
    async (code) => {
      const room = await seeded(counterWith({ once: saying(code), adding: saying(code) }));
      const words = "the tool add of counter threw: the log of its process says what";
      const added = room.tool(episode, "0/0", "add", { by: 1 });
      await expect(added).rejects.toMatchObject({ code: "unavailable", message: words });
      await expect(room.tool(episode, "0/1", "once")).rejects.toMatchObject({ code: "invalid_checkpoint_state" });
      expect(await room.events("session.restart_marked")).toHaveLength(1);
      expect(await room.text()).not.toContain(secret);
      expect(room.troubles).toEqual([expect.stringContaining(secret), expect.stringContaining(secret)]);
    },
  );

  test.each(oursAlone)("%s of verify.run, state.open and external.open is no word of ours", async (code) => {
    const room = await seeded(counterWith({ verify: { run: saying(code) } }));
    const message = "verify.run of counter threw: the log of its process says what";
    await expect(room.verify(episode)).rejects.toMatchObject({ code: "invalid_request", message });
    const state = { open: saying(code), evolve: () => ({ count: 0 }) };
    await expect(seeded(counterWith({ state }))).rejects.toMatchObject({ code: "invalid_request" });
    const external = Object.assign(new Shelf(), { open: saying(code) });
    await expect(seeded(counterWith({ external }))).rejects.toMatchObject({ code: "invalid_request" });
  });

  test.each(oursAlone)("%s of an activation, or of a policy, is an invalid request", async (code) => {
    const room = await agentOf(saying(code));
    const problem = { code: "invalid_request", message: "activate of writer threw: the log of its process says what" };
    expect(await room.run(agentEpisode("r1"))).toMatchObject({ ok: false, problem });
    const { room: models, url } = await modelSaying(code);
    expect(await ask(url)).toMatchObject({ status: 400, body: { error: { code: "invalid_request" } } });
    expect(models.lines.filter((line) => line.includes(secret))).toHaveLength(1);
  });

  test.each(theirs)("%s is theirs, and goes out as it is", async (code) => {
    const message = `${code} ${secret}`;
    const room = await seeded(counterWith({ once: saying(code), verify: { run: saying(code) } }));
    await expect(room.verify(episode)).rejects.toMatchObject({ code, message });
    await expect(room.tool(episode, "0/0", "once")).rejects.toMatchObject({ code, message });
    const agent = await agentOf(saying(code));
    expect(await agent.run(agentEpisode("r1"))).toMatchObject({ ok: false, problem: { code, message } });
    expect(JSON.stringify(await ask((await modelSaying(code)).url))).toContain(message);
  });
});

describe("[L3] a tool that has returned what cannot be kept has done something:", () => {
  const stateless = defineResources({
    name: "bare",
    mode: "exported",
    seed: z.unknown(),
    tools: {
      once: { description: "once", input: z.looseObject({}), run: async () => ({ result: "done", change: 1 }) },
    },
    verify: { run: async () => ({ reward: 1 }) },
  });
  test.each<[string, Resources]>([
    ["a change of more than 256 KiB", counterWith({ once: async () => ({ result: "", change: "x".repeat(262_144) }) })],
    ["a change without a state", stateless],
    [
      "a change that state.evolve refuses",
      counterWith({
        once: async () => ({ result: "", change: 1 }),
        state: { open: () => ({ count: 0 }), evolve: refusing },
      }),
    ],
    ["a change that is no JSON", counterWith({ once: async () => ({ result: "", change: Number.NaN }) })],
  ])("%s makes its session a restart, and no call goes on in it", async (_, resources) => {
    const room = await seeded(resources);
    const lost = { code: "invalid_checkpoint_state" };
    await expect(room.tool(episode, "0/0", "once")).rejects.toMatchObject(lost);
    await expect(room.tool(episode, "0/1", "once")).rejects.toMatchObject(lost);
    expect(await room.events("tool.finished")).toEqual([]);
    expect(await room.events("session.restart_marked")).toHaveLength(1);
    expect(room.troubles).toHaveLength(1);
  });

  test("where it repeats the caller is told to ask again", async () => {
    const state = { open: () => ({ count: 0 }), evolve: refusing };
    const room = await seeded(counterWith({ state }));
    await expect(room.tool(episode, "0/0", "add", { by: 1 })).rejects.toMatchObject({ code: "unavailable" });
    expect(await room.events("session.restart_marked")).toEqual([]);
  });
});

describe("the log of the process names once what failed, and at what:", () => {
  const about = { role: "resources", rollout: "r", attempt: 0 };

  test("hooks of a resources server, and the call of a tool", async () => {
    const external = Object.assign(new Shelf(), { capture: fails, free: fails });
    const room = await seeded(counterWith({ once: fails, adding: fails, verify: { run: fails }, external }));
    await room.tool(episode, "3/1", "add", { by: 1 }).catch(() => {});
    await room.verify(episode).catch(() => {});
    await room.capture("c1", [episode]);
    await room.resume("c1");
    await room.tool(episode, "4/0", "once").catch(() => {});
    await room.retire(episode);
    expect(room.abouts).toEqual([
      { ...about, hook: "the tool add", call: "3/1" },
      { ...about, hook: "verify.run" },
      { ...about, hook: "external.capture" },
      { ...about, hook: "the tool once", call: "4/0" },
      { ...about, hook: "external.free" },
    ]);
  });

  test("an activation, and a policy", async () => {
    const agent = await agentOf(fails);
    await agent.run(agentEpisode("r1"));
    expect(agent.abouts).toEqual([{ role: "agent", hook: "activate", rollout: "r1", attempt: 0 }]);
    const models = new ModelRoom();
    stops.push(() => void models.stop());
    const { url } = await models.serve(onlyPolicy(fails));
    await ask(url);
    expect(models.abouts).toEqual([{ role: "model", hook: "reply", rollout: "r1", attempt: 0, call: "0" }]);
    expect(models.lines.filter((line) => line.includes("broken"))).toHaveLength(1);
  });
});

test("a process of ours alone decides what becomes of what nobody catches: nobody listens before", () => {
  const before = listening();
  const end = containStrays(() => {});
  expect(listening()).toEqual(before.map((count) => count + 1));
  end();
  expect(listening()).toEqual(before);
});
