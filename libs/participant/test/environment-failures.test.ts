/** Whatever `run` does, its episode has an end, and that is never a reward where something failed. */
import { defineEnvironment, type EpisodeRun, type Outcome } from "@holdpoint/participant";
import type { Json } from "@holdpoint/schemas";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { content, played, Room, roomOf, type Run } from "./environment-room.ts";

/** Goes all the way, and is worth `reward`. */
async function throughTo(episode: EpisodeRun<Json>, reward: number): Promise<Outcome> {
  await episode.seed();
  await episode.invokeAgent();
  await episode.closeAgent();
  await episode.verify();
  return { reward };
}

describe("a run that does not keep to the steps fails its episode, and says where:", () => {
  test.each<[string, Run, RegExp]>([
    ["without a seed", (e) => e.invokeAgent().then(() => ({ reward: 1 })), /called invokeAgent where seed comes next/],
    [
      "with verify before the agent is closed",
      async (e) => {
        await e.seed();
        await e.invokeAgent();
        return { reward: (await e.verify()).reward };
      },
      /called verify where closeAgent comes next/,
    ],
    [
      "with a second activation",
      async (e) => {
        await e.seed();
        await e.invokeAgent();
        await e.invokeAgent();
        return { reward: 1 };
      },
      /called invokeAgent where closeAgent comes next/,
    ],
    [
      "with a step after the last",
      async (e) => {
        const outcome = await throughTo(e, 1);
        await e.verify();
        return outcome;
      },
      /called verify where the end comes next/,
    ],
    [
      "with two steps at once",
      async (e) => {
        await Promise.all([e.seed(), e.invokeAgent()]);
        return { reward: 1 };
      },
      /called invokeAgent while seed was under way/,
    ],
    ["that takes none", async () => ({ reward: 1 }), /returned without seed/],
    [
      "that skips the last",
      async (e) => {
        await e.seed();
        await e.invokeAgent();
        await e.closeAgent();
        return { reward: 1 };
      },
      /returned without verify/,
    ],
    [
      "that does not await one",
      async (e) => {
        void e.seed();
        return { reward: 1 };
      },
      /returned while seed was under way/,
    ],
    [
      "that swallows the refusal",
      async (e) => {
        await e.verify().catch(() => {});
        return throughTo(e, 1);
      },
      /called verify where seed comes next/,
    ],
  ])("%s", async (_, run, why) => {
    const room = roomOf(run);
    expect(await played(room)).toMatchObject({ status: "failed", reward: null, verdict: null });
    expect(await room.ending()).toMatchObject({ why: expect.stringMatching(why) });
    expect(await room.ending()).toMatchObject({ why: expect.stringContaining("environment sums") });
  });
});

describe("[F7] a failure is an outcome of its own, never a reward:", () => {
  test("what run throws is why", async () => {
    const room = roomOf(async (episode) => {
      await episode.seed();
      throw new RangeError("no such unit");
    });
    expect(await played(room)).toMatchObject({ status: "failed", reward: null, why: "no such unit" });
  });

  test.each([
    ["undefined", undefined, "threw undefined; expected an Error"],
    ["null", null, "threw null; expected an Error"],
    ["a string", "no such unit", 'threw the string "no such unit"; expected an Error'],
    ["a number", 7, "threw a number; expected an Error"],
    ["an object", { message: "no such unit" }, "threw an object that is no Error; expected an Error"],
  ])("what run throws that is no Error is said to be none: %s", async (_, thrown, words) => {
    const room = roomOf(async (episode) => {
      await episode.seed();
      return Promise.reject(thrown);
    });
    const why = expect.stringContaining(`run of environment sums ${words}`);
    expect(await played(room)).toMatchObject({ status: "failed", reward: null, why });
  });

  test("an Error without a message is why by its name, and one with too long a message by what of it fits", async () => {
    const silent = roomOf(() => Promise.reject(new RangeError()));
    expect(await played(silent)).toMatchObject({ status: "failed", why: "RangeError" });
    const verbose = roomOf(() => Promise.reject(new RangeError("no ".repeat(1_000_000))));
    const why = expect.stringMatching(/^no no [^]*… \(of 3000000 characters\)$/);
    expect(await played(verbose)).toMatchObject({ status: "failed", why });
  });

  test("so it is where run throws at once", async () => {
    const room = roomOf(() => {
      throw new RangeError("no such unit");
    });
    expect(await played(room)).toMatchObject({ status: "failed", reward: null, why: "no such unit" });
  });

  test.each([
    ["no number", { reward: Number.NaN }],
    ["nothing", undefined],
    ["more than a reward", { reward: 1, passed: 3 }],
  ])("what run returns has to be a reward: %s", async (_, outcome) => {
    const room = roomOf(async (episode) => {
      await throughTo(episode, 1);
      return outcome as Outcome;
    });
    const why = expect.stringMatching(/run of environment sums[^]*expected \{ reward: number \}/);
    expect(await played(room)).toMatchObject({ status: "failed", reward: null, why });
  });

  test("what a server refuses is why, whatever run makes of it", async () => {
    const room = roomOf(async (episode) => {
      await episode.seed();
      await episode.invokeAgent().catch(() => {});
      return { reward: 0 };
    });
    room.replies["activate"] = { problem: { code: "invalid_checkpoint_state", message: "its sandbox is lost" } };
    expect(await played(room)).toMatchObject({ status: "failed", reward: null, why: "its sandbox is lost" });
  });

  test.each([
    ["the agent", "activate", "the activation threw"],
    ["the resources server", "verify", "verify threw"],
  ])("a mistake in the code of %s is no reward, and is not asked for again", async (_, method, message) => {
    const room = new Room();
    room.replies[method] = { problem: { code: "invalid_request", message } };
    expect(await played(room)).toMatchObject({ status: "failed", reward: null, verdict: null, why: message });
    expect(room.asked.filter((what) => what.includes(` ${method} `))).toHaveLength(1);
  });

  test("what a server says is unavailable is asked for again, and is no failure", async () => {
    const room = new Room();
    room.replies["verify"] = { problem: { code: "unavailable", message: "not now" } };
    const ending = played(room);
    await room.untilAsked("resources verify r1/0");
    room.replies["verify"] = new Room().replies["verify"];
    expect(await ending).toMatchObject({ status: "finished", reward: 1 });
    expect(room.asked.filter((what) => what === "resources verify r1/0").length).toBeGreaterThan(1);
  });

  test("a task schema that throws has its dispatch refused, not asked for again", async () => {
    const task = z.string().refine(() => {
      throw new TypeError("no such table");
    });
    const room = new Room(defineEnvironment({ name: "sums", mode: "exported", task }));
    await room.enter();
    const problem = {
      code: "invalid_request",
      message: "the task schema of environment sums threw, where it has to say what is wrong",
    };
    expect(await room.dispatch("r1")).toEqual({ ok: false, problem });
  });

  test("a verdict without a reward is named with who gave it", async () => {
    const room = new Room();
    room.replies["verify"] = { verdict: content("{}") };
    const why = expect.stringMatching(/resources main gave a verdict without a reward/);
    expect(await played(room)).toMatchObject({ status: "failed", reward: null, why });
  });

  test("a run that does not come back ends with its budget", async () => {
    const room = roomOf(async (episode) => {
      await episode.seed();
      room.nowMs += 5_000;
      return new Promise(() => {});
    });
    await room.servants();
    await room.enter();
    await room.dispatch("r1", { budgetMs: 1 });
    expect(await room.ending()).toMatchObject({ status: "timed_out", reward: null });
  });
});

describe("a budget that is used up while a server keeps the episode waiting says what it was told last:", () => {
  const budgetMs = 50;

  /** An episode, up to when `what` was asked; its time is used up then. @returns why it has ended */
  async function late(room: Room, what: string): Promise<object> {
    await room.servants();
    await room.enter();
    await room.dispatch("r1", { budgetMs });
    while (room.asked.filter((asked) => asked === what).length < 2) await room.turns(1);
    room.nowMs += 2 * budgetMs;
    return room.ending();
  }

  test.each([
    ["unavailable", "it could not do that then; the log of its process may say why"],
    ["admission_closed", "a checkpoint was open there"],
  ])("%s, in words of ours, since a server's may hold secrets", async (code, meaning) => {
    const room = new Room();
    room.replies["verify"] = { problem: { code, message: "token=hunter2" } };
    const why = `budget used up; the last answer of resources main to verify was ${code}: ${meaning}`;
    expect(await late(room, "resources verify r1/0")).toMatchObject({ status: "timed_out", reward: null, why });
  });

  test("that nobody holds its session any more", async () => {
    const room = new Room();
    room.holders["resources"] = undefined;
    room.replies["verify"] = { problem: { code: "not_found", message: "no session" } };
    await room.join(["resources", "0"], ["agent", "0"]);
    await room.servants();
    await room.enter();
    await room.dispatch("r1", { budgetMs });
    await room.untilAsked("resources verify r1/0");
    await room.until("session.restart_marked");
    room.nowMs += 2 * budgetMs;
    const why = expect.stringMatching(
      /^budget used up; the last answer of resources main to verify was not_found: no worker/,
    );
    expect(await room.ending()).toMatchObject({ status: "timed_out", why });
  });

  test("nothing, where the server has answered since", async () => {
    const room = roomOf(async (episode) => {
      await episode.seed();
      room.nowMs += 2 * budgetMs;
      return new Promise(() => {});
    });
    room.replies["resources seed"] = { problem: { code: "unavailable", message: "not now" } };
    await room.servants();
    await room.enter();
    await room.dispatch("r1", { budgetMs });
    await room.untilAsked("resources seed r1/0");
    delete room.replies["resources seed"];
    expect(await room.ending()).toMatchObject({ status: "timed_out", why: "budget used up" });
  });
});
