import { HoldpointError } from "@holdpoint/errors";
import { describe, expect, test, vi } from "vitest";
import { counterWith, Door } from "./resources-counter.ts";
import { episodeOf, patience, ResourcesRoom } from "./resources-room.ts";

const episode = episodeOf("r");

async function seeded(resources = counterWith()) {
  const room = new ResourcesRoom();
  const served = await room.serve(resources);
  await room.seed(episode);
  return { room, served };
}

/** A verify that is asked while a checkpoint is open. */
async function verifying(mode: "wait" | "replay") {
  const { room } = await seeded(counterWith({ verify: { mode, run: async () => ({ reward: 1 }) } }));
  expect(await room.seed(episode)).toMatchObject({ terms: { verify: mode } });
  await room.asked("prepare", { checkpointId: "c1" });
  return { room, verdict: room.verify(episode) };
}

describe("a call", () => {
  test("[L3] runs once, and is answered from the log from then on, also by the next process", async () => {
    const { room, served } = await seeded();
    expect(await room.tool(episode, "0/0", "add", { by: 2 })).toBe("2");
    expect(await room.tool(episode, "0/1", "add", { by: 1 })).toBe("3");
    expect(await room.tool(episode, "0/0", "add", { by: 2 })).toBe("2");
    await served.stop();
    await room.serve(counterWith());
    expect(await room.tool(episode, "0/1", "add", { by: 1 })).toBe("3");
    expect(await room.tool(episode, "1/0", "add", { by: 4 })).toBe("7");
    expect(await room.events("tool.started")).toHaveLength(3);
    expect(room.troubles).toEqual([]);
  });

  test("[L3] that is asked twice at the same time runs once", async () => {
    const { room } = await seeded();
    const asked = [1, 2, 3].map(() => room.tool(episode, "0/0", "add", { by: 2 }));
    expect(await Promise.all(asked)).toEqual(["2", "2", "2"]);
    expect(await room.events("tool.finished")).toHaveLength(1);
  });

  test("[L3] of a known name with other arguments is refused", async () => {
    const { room } = await seeded();
    await room.tool(episode, "0/0", "add", { by: 2 });
    await expect(room.tool(episode, "0/0", "add", { by: 3 })).rejects.toMatchObject({ code: "session_conflict" });
    await expect(room.tool(episode, "0/0", "once")).rejects.toMatchObject({ code: "session_conflict" });
  });

  test("that is wrong is answered with what was wrong, and runs nothing", async () => {
    const { room } = await seeded();
    expect(await room.tool(episode, "0/0", "add", { by: "two" })).toMatch(/^error: wrong arguments: .*by/s);
    expect(await room.tool(episode, "0/1", "add", "no json")).toMatch(/^error: wrong arguments/);
    expect(await room.tool(episode, "0/2", "subtract")).toBe("error: there is no tool subtract; there are add, once");
    expect(await room.tool(episode, "1/0", "add", { by: 1 })).toBe("1");
  });

  test("whose text is too large for an event is answered whole, also from the log", async () => {
    const large = "x".repeat(40_000);
    const { room } = await seeded(counterWith({ once: async () => ({ result: large }) }));
    const asked = { turn: 0, index: 0, name: "once", arguments: "{}" };
    expect(await room.rpc(episode, "tool", asked)).toMatchObject({ result: { bytes: 40_000 } });
    expect(await room.rpc(episode, "tool", asked)).toMatchObject({ result: { bytes: 40_000 } });
    expect(await room.events("tool.started")).toHaveLength(1);
  });

  test("[L9] that was under way when its process died runs again where its tool repeats", async () => {
    const door = new Door();
    const { room, served } = await seeded(counterWith({ adding: () => door.pass() }));
    void room.tool(episode, "0/0", "add", { by: 2 }).catch(() => {});
    await door.reached;
    void served.stop();
    await room.serve(counterWith());
    expect(await room.tool(episode, "0/0", "add", { by: 2 })).toBe("2");
    expect(await room.tool(episode, "0/1", "add", { by: 0 })).toBe("2");
  });

  test("[L3] that was under way when its process died makes its session a restart where its tool does not repeat", async () => {
    const door = new Door();
    let done = 0;
    const once = async () => {
      done += 1;
      await door.pass();
      return { result: "done" };
    };
    const { room, served } = await seeded(counterWith({ once }));
    void room.tool(episode, "0/0", "once").catch(() => {});
    await door.reached;
    void served.stop();
    await room.serve(counterWith({ once }));
    await expect(room.tool(episode, "0/0", "once")).rejects.toMatchObject({ code: "invalid_checkpoint_state" });
    await expect(room.verify(episode)).rejects.toMatchObject({ code: "invalid_checkpoint_state" });
    expect(done).toBe(1);
    expect(await room.events("session.restart_marked")).toMatchObject([{ rollout: "r" }]);
    expect(await room.seed(episode)).toMatchObject({ restart: expect.stringContaining("did not end") });
  });
});

describe("a tool that throws", () => {
  test("refuses for good with an error of ours: the same call is refused again, and others go on", async () => {
    let refused = 0;
    const once = async () => {
      refused += 1;
      throw new HoldpointError("not_found", "no such thing");
    };
    const { room } = await seeded(counterWith({ once }));
    await expect(room.tool(episode, "0/0", "once")).rejects.toMatchObject({ code: "not_found" });
    await expect(room.tool(episode, "0/0", "once")).rejects.toMatchObject({ code: "not_found" });
    expect(refused).toBe(1);
    expect(await room.tool(episode, "1/0", "add", { by: 1 })).toBe("1");
  });

  test("runs again after an error that says that it may", async () => {
    const once = vi
      .fn<() => Promise<{ result: string }>>()
      .mockRejectedValueOnce(new HoldpointError("unavailable", "not now"))
      .mockResolvedValueOnce({ result: "done" });
    const { room } = await seeded(counterWith({ once }));
    await expect(room.tool(episode, "0/0", "once")).rejects.toMatchObject({ code: "unavailable" });
    expect(await room.tool(episode, "0/0", "once")).toBe("done");
    expect(await room.tool(episode, "0/0", "once")).toBe("done");
    expect(once).toHaveBeenCalledTimes(2);
  });

  test("[A3] something else is told as unavailable where it repeats, and never as its result", async () => {
    const adding = vi.fn<() => Promise<void>>().mockRejectedValueOnce(new Error("broken"));
    const { room } = await seeded(counterWith({ adding }));
    await expect(room.tool(episode, "0/0", "add", { by: 1 })).rejects.toMatchObject({ code: "unavailable" });
    expect(await room.tool(episode, "0/0", "add", { by: 1 })).toBe("1");
    expect(room.troubles).toEqual([expect.stringContaining("broken")]);
  });

  test("[L3] something else makes its session a restart where it does not repeat", async () => {
    const once = vi.fn<() => Promise<never>>().mockRejectedValue(new Error("broken"));
    const { room } = await seeded(counterWith({ once }));
    await expect(room.tool(episode, "0/0", "once")).rejects.toMatchObject({ code: "invalid_checkpoint_state" });
    await expect(room.tool(episode, "0/0", "once")).rejects.toMatchObject({ code: "invalid_checkpoint_state" });
    expect(once).toHaveBeenCalledTimes(1);
    expect(await room.asked("prepare", { checkpointId: "c1" })).toMatchObject({ restarts: [episode], continued: [] });
  });

  test("a change that the state does not take is recorded nowhere", async () => {
    const { room } = await seeded(counterWith({ once: async () => ({ result: "x", change: "no number" }) }));
    await expect(room.tool(episode, "0/0", "once")).rejects.toMatchObject({ code: "invalid_checkpoint_state" });
    expect(await room.events("tool.finished")).toEqual([]);
  });
});

describe("a checkpoint", () => {
  test("waits for a tool call in flight, and holds the next one until it is over", async () => {
    const door = new Door();
    const { room } = await seeded(counterWith({ adding: () => door.pass() }));
    const first = room.tool(episode, "0/0", "add", { by: 2 });
    await door.reached;
    const late = await room.asked("prepare", { checkpointId: "c0", remainingMs: 0 });
    expect(late).toMatchObject({ blockerCount: 1, blockers: [{ ...episode, reason: "tool call in flight" }] });
    const held = room.tool(episode, "1/0", "add", { by: 1 });
    door.open();
    expect(await first).toBe("2");
    const { asked } = await room.ask("prepare", { checkpointId: "c0" });
    expect(await room.answerTo(asked)).toMatchObject({ blockerCount: 0 });
    expect(await room.events("tool.started")).toHaveLength(1);
    await room.resume("c0");
    expect(await held).toBe("3");
  });

  test("[S7] neither holds a call of an episode that is a restart elsewhere, nor waits for one", async () => {
    const door = new Door();
    const { room } = await seeded(counterWith({ adding: () => door.pass() }));
    const other = episodeOf("other");
    await room.seed(other);
    const restart = { index: 0, name: "add", arguments: '{"by":2}', restart: true };
    const first = room.rpc(episode, "tool", { turn: 0, ...restart });
    await door.reached;
    expect(await room.asked("prepare", { checkpointId: "c1" })).toMatchObject({ blockerCount: 0 });
    door.open();
    expect(await first).toMatchObject({ result: { text: "2" } });
    const held = room.tool(other, "0/0", "add", { by: 1 });
    expect(await room.rpc(episode, "tool", { turn: 1, ...restart })).toMatchObject({ result: { text: "4" } });
    expect(await room.events("tool.started")).toMatchObject([{ rollout: "r" }, { rollout: "r" }]);
    await room.resume("c1");
    expect(await held).toBe("1");
  });

  test("counts direct calls that have a result at its edges, and no others", async () => {
    const refused = vi.fn<() => Promise<never>>().mockRejectedValue(new HoldpointError("not_found", "no such thing"));
    const { room } = await seeded(counterWith({ once: refused }));
    await room.tool(episode, "0/0", "add", { by: 2 });
    await room.tool(episode, "0/1", "add", { by: "two" });
    await room.tool(episode, "0/2", "once").catch(() => {});
    await room.capture("c1", [episode]);
    expect(await room.events("session.captured")).toMatchObject([{ edges: { tools: { received: 2 } } }]);
  });
});

describe("verify", () => {
  test("[S20] judges once, and answers from the log from then on", async () => {
    const run = vi.fn<() => Promise<{ reward: number }>>().mockResolvedValue({ reward: 0.5 });
    const { room, served } = await seeded(counterWith({ verify: { run } }));
    expect(await Promise.all([room.verify(episode), room.verify(episode)])).toEqual([{ reward: 0.5 }, { reward: 0.5 }]);
    await served.stop();
    await room.serve(counterWith({ verify: { run } }));
    expect(await room.verify(episode)).toEqual({ reward: 0.5 });
    expect(run).toHaveBeenCalledTimes(1);
  });

  test("[S20] that had finished at the cut is not done again after a restore", async () => {
    const run = vi.fn<() => Promise<{ reward: number }>>().mockResolvedValue({ reward: 0.5 });
    const { room } = await seeded(counterWith({ verify: { run } }));
    await room.verify(episode);
    const cut = await room.checkpoint("c1", [episode]);
    await room.retire(episode);
    expect(await room.restore("r1", "c1", cut, [episode])).toMatchObject({ installed: [episodeOf("r", 1)] });
    expect(await room.verify(episodeOf("r", 1))).toEqual({ reward: 0.5 });
    expect(run).toHaveBeenCalledTimes(1);
  });

  test("gets the state, the seed and what the agent gave", async () => {
    const seen: unknown[] = [];
    const { room } = await seeded(
      counterWith({
        verify: {
          run: async ({ state, seed, output }) => {
            seen.push(state, seed, output);
            return { reward: 1 };
          },
        },
      }),
    );
    await room.tool(episode, "0/0", "add", { by: 2 });
    const output = {
      digest: "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
      bytes: 3,
      text: "foo",
    };
    await room.rpc(episode, "verify", { output });
    expect(seen).toEqual([{ count: 2 }, { target: 3 }, "foo"]);
  });

  test("is held while a checkpoint is open where a checkpoint waits for it, and is not where it may run again", async () => {
    const replay = await verifying("replay");
    expect(await replay.verdict).toEqual({ reward: 1 });
    const wait = await verifying("wait");
    expect(await wait.room.asked("commit", { checkpointId: "c1" })).toBeDefined();
    expect(await wait.room.events("verify.finished")).toEqual([]);
    await wait.room.resume("c1");
    expect(await wait.verdict).toEqual({ reward: 1 });
  });

  test("never makes a reward of a failure: a verdict without one is an error", async () => {
    const { room } = await seeded(counterWith({ verify: { run: async () => ({ reward: Number.NaN }) } }));
    await expect(room.verify(episode)).rejects.toMatchObject({ code: "invalid_request" });
    expect(await room.events("verify.finished")).toEqual([]);
  });
});

test("a seed is answered before its tools: a call without a session is not found", async () => {
  const room = new ResourcesRoom();
  await room.serve(counterWith());
  await vi.waitFor(async () => {
    await expect(room.tool(episode, "0/0", "add", { by: 1 })).rejects.toMatchObject({ code: "not_found" });
  }, patience);
});
