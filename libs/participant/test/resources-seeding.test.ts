import { HoldpointError } from "@holdpoint/errors";
import { Benches } from "@holdpoint/participant";
import { describe, expect, test, vi } from "vitest";
import { counterWith, Door, type Parts, Shelf } from "./resources-counter.ts";
import { episodeOf, patience, ResourcesRoom } from "./resources-room.ts";

const episode = episodeOf("r");

async function serving(parts: Parts = {}) {
  const room = new ResourcesRoom();
  await room.serve(counterWith(parts));
  return room;
}

describe("a seed", () => {
  test("that comes again is answered the same, whatever the order of its fields, and sets nothing up again", async () => {
    const external = new Shelf();
    const room = await serving({ external });
    const first = await room.seed(episode, { target: 3, more: { a: 1, b: 2 } });
    expect(await room.seed(episode, { more: { b: 2, a: 1 }, target: 3 })).toEqual(first);
    expect(external.calls).toEqual(["open r/0"]);
    expect(await room.events("session.seeded")).toHaveLength(1);
  });

  test("that differs from the session's is refused", async () => {
    const room = await serving();
    await room.seed(episode);
    await expect(room.seed(episode, { target: 4 })).rejects.toMatchObject({ code: "session_conflict" });
  });

  test("that the definition does not take is refused, and says why", async () => {
    const room = await serving();
    await expect(room.seed(episode, { target: "three" })).rejects.toMatchObject({
      code: "invalid_request",
      message: expect.stringContaining("the seed of counter"),
    });
    expect(await room.seed(episode)).toMatchObject({ restart: null });
  });

  test("of another attempt is refused while one is live, and while one is being seeded", async () => {
    const external = new Shelf();
    const room = await serving({ external });
    external.door = new Door();
    const first = room.seed(episode);
    await external.door.reached;
    await expect(room.seed(episodeOf("r", 1))).rejects.toMatchObject({ code: "session_conflict" });
    external.door.open();
    await first;
    await expect(room.seed(episodeOf("r", 1))).rejects.toMatchObject({ code: "session_conflict" });
    await room.retire(episode);
    await room.seed(episodeOf("r", 1));
    await expect(room.seed(episode)).rejects.toMatchObject({ code: "stale_attempt" });
  });

  test("[S10] of a lender is answered with terms that say so", async () => {
    const room = await serving({ external: new Shelf(), lends: true });
    expect(await room.seed(episode)).toMatchObject({ terms: { sandboxLent: true, grantsBound: false } });
  });

  test("[C1] that comes while another of the same session runs waits until that is done", async () => {
    const external = new Shelf();
    const room = await serving({ external });
    external.door = new Door();
    const order: string[] = [];
    const first = room.seed(episode).then(() => order.push("first"));
    await external.door.reached;
    const second = room.seed(episode).then(() => order.push("second"));
    const differing = room.seed(episode, { target: 9 }).catch((error: unknown) => order.push(codeOf(error)));
    await room.checkpoint("c1", []); // whatever could go on has by now
    expect(order).toEqual([]);
    external.door.open();
    await Promise.all([first, second, differing]);
    expect(order).toEqual(["first", "second", "session_conflict"]);
    expect(external.calls).toEqual(["open r/0"]);
  });

  test("[C2] whose attempt is retired meanwhile frees what it built, and is answered stale_attempt", async () => {
    const external = new Shelf();
    const room = await serving({ external });
    external.door = new Door();
    const seed = room.seed(episode).catch(codeOf);
    await external.door.reached;
    expect(external.live.size).toBe(1);
    expect(await room.retire(episode)).not.toHaveProperty("problem");
    expect(await seed).toBe("stale_attempt");
    expect(external.live.size).toBe(0);
    expect(await room.events("session.seeded")).toEqual([]);
  });

  test("[A15] that fails before there is a session poisons nothing: later seeds and captures go through", async () => {
    const external = new Shelf();
    external.failing.open = "bad";
    const room = await serving({ external });
    await room.seed(episode);
    await expect(room.seed(episodeOf("bad"))).rejects.toMatchObject({ code: "unavailable" });
    expect([...external.live.keys()]).toEqual(["r/0"]);
    expect(await room.asked("prepare", { checkpointId: "c0" })).toMatchObject({
      blockerCount: 0,
      continued: [episode],
    });
    await room.resume("c0");
    await room.checkpoint("c1", [episode]);
    expect(await room.events("session.captured")).toHaveLength(1);
    delete external.failing.open;
    expect(await room.seed(episodeOf("bad"))).toMatchObject({ restart: null });
  });

  test("[A15] whose state cannot be made, or is none, leaves no session behind", async () => {
    const open = vi
      .fn<() => Promise<{ count: number }>>()
      .mockRejectedValueOnce(new HoldpointError("invalid_request", "no such task"))
      .mockResolvedValueOnce({ count: Number.NaN })
      .mockResolvedValue({ count: 1 });
    const room = await serving({ state: { open, evolve: (state) => state } });
    await expect(room.seed(episode)).rejects.toMatchObject({ code: "invalid_request", message: "no such task" });
    await expect(room.seed(episode)).rejects.toMatchObject({ code: "invalid_request" });
    expect(await room.seed(episode)).toMatchObject({ restart: null });
  });
});

describe("a session that is over", () => {
  test("by a close is freed, and again is no error", async () => {
    const external = new Shelf();
    const room = await serving({ external });
    await room.seed(episode);
    await room.rpc(episode, "close");
    await expect(room.rpc(episode, "close")).rejects.toMatchObject({ code: "not_found" });
    expect(external.calls).toEqual(["open r/0", "free r/0"]);
    await expect(room.tool(episode, "0/0", "add", { by: 1 })).rejects.toMatchObject({ code: "not_found" });
  });

  test("leaves no place of work behind, also where a call was held meanwhile", async () => {
    const of = vi.spyOn(Benches.prototype, "of");
    const room = await serving();
    await room.seed(episode);
    await room.asked("prepare", { checkpointId: "c1" });
    const held = room.tool(episode, "0/0", "add", { by: 1 }).catch(codeOf);
    await room.rpc(episode, "close");
    await room.resume("c1");
    expect(await held).toBe("stale_attempt");
    const [benches] = of.mock.contexts;
    if (!(benches instanceof Benches)) throw new Error("nothing was worked at");
    expect(benches.upTo([episodeOf("r", 9)])).toEqual([]);
  });

  test("by a retirement is freed beside at most 15 others", async () => {
    const episodes = Array.from({ length: 40 }, (_, at) => episodeOf(`r${at}`));
    const external = new Shelf();
    let freeing = 0;
    let most = 0;
    vi.spyOn(external, "free").mockImplementation(async () => {
      freeing += 1;
      most = Math.max(most, freeing);
      await new Promise((resolve) => setImmediate(resolve));
      freeing -= 1;
    });
    const room = await serving({ external });
    await Promise.all(episodes.map((one) => room.seed(one)));
    await room.retire(...episodes);
    expect(external.free).toHaveBeenCalledTimes(40);
    expect(most).toBe(16);
  });

  test("by a retirement has its calls called off, and waited for", async () => {
    const door = new Door();
    const ended = vi.fn<() => void>();
    const room = await serving({
      once: async () => {
        await door.pass();
        ended();
        return { result: "done" };
      },
    });
    await room.seed(episode);
    const call = room.tool(episode, "0/0", "once").catch(codeOf);
    await door.reached;
    const { asked } = await (await room.mark(episode), room.ask("retire", { rollouts: [episode] }));
    door.open();
    expect(await room.answerTo(asked)).not.toHaveProperty("problem");
    expect(ended).toHaveBeenCalledTimes(1);
    expect(await call).toBe("stale_attempt");
  });
});

test("a server that only restarts runs calls on while a checkpoint is open, and holds nothing up", async () => {
  const room = await serving({ mode: "restart_only" });
  await room.seed(episode);
  expect(await room.asked("prepare", { checkpointId: "c1" })).toMatchObject({ restarts: [episode], blockerCount: 0 });
  expect(await room.tool(episode, "0/0", "add", { by: 1 })).toBe("1");
  await vi.waitFor(async () => expect(await room.verify(episode)).toEqual({ reward: 0 }), patience);
});

function codeOf(error: unknown): string {
  return HoldpointError.is(error) ? error.code : String(error);
}
