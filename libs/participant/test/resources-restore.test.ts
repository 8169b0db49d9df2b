import { defineResources, type ExternalState } from "@holdpoint/participant";
import { describe, expect, test, vi } from "vitest";
import * as z from "zod";
import { counterWith, Door, Shelf } from "./resources-counter.ts";
import { mcpClient, mcpTool } from "./resources-mcp-client.ts";
import { episodeOf, patience, ResourcesRoom } from "./resources-room.ts";

const episode = episodeOf("r");
const next = episodeOf("r", 1);
const ttlMs = 1_000_000;

describe("a restored session", () => {
  test("[S18] seeded again keeps its state, runs no setup, and gets fresh access", async () => {
    const external = new Shelf();
    const open = vi.fn<() => { count: number }>(() => ({ count: 0 }));
    const parts = { external, state: { open, evolve: counted }, grants: { ttlMs } };
    const room = new ResourcesRoom();
    const served = await room.serve(counterWith(parts));
    const before = await room.granted(episode);
    await room.tool(episode, "0/0", "add", { by: 2 });
    const cut = await room.checkpoint("c1", [episode]);
    await room.tool(episode, "1/0", "add", { by: 5 }); // abandoned
    await room.retire(episode);
    await room.restore("r1", "c1", cut, [episode]);

    const after = await room.granted(next);
    expect(after.token).not.toBe(before.token);
    expect(open).toHaveBeenCalledTimes(1);
    expect(external.calls).toEqual(["open r/0", "capture r/0", "free r/0", "install r/1"]);
    expect(await room.tool(next, "0/0", "add", { by: 2 })).toBe("2"); // as before the cut
    expect(await room.tool(next, "1/0", "add", { by: 1 })).toBe("3");
    expect(await room.verify(next)).toEqual({ reward: 1 });
    const again = await room.granted(next);
    expect(new Set([before.token, after.token, again.token]).size).toBe(3);
    expect(await room.events("grant.issued")).toHaveLength(3);
    await served.stop();
  });

  test("[S2] is opened by the new token alone, on the state that it was captured with; the old one stays refused", async () => {
    const room = new ResourcesRoom();
    const served = await room.serve(counterWith({ grants: { ttlMs } }));
    const { terms, access } = await room.seed(episode);
    expect(terms).toMatchObject({ grantsBound: true, sandboxLent: false });
    if (access === undefined) throw new Error("no access");
    const old = await mcpClient(access);
    expect(await mcpTool(old, "add", { by: 2 })).toBe("2");
    const cut = await room.checkpoint("c1", [episode]);
    await room.retire(episode);
    await room.restore("r1", "c1", cut, [episode]);

    await expect(mcpTool(old, "add", { by: 1 })).rejects.toMatchObject({ code: 401 });
    const fresh = await mcpClient(await room.granted(next));
    expect(await mcpTool(fresh, "add", { by: 1 })).toBe("3");
    await expect(mcpTool(old, "add", { by: 1 })).rejects.toMatchObject({ code: 401 });
    await served.stop();
    const port = Number(new URL(access.mcpUrl ?? "").port);
    const later = await room.serve(counterWith({ grants: { ttlMs } }), { mcp: { port } });
    // The client may still try a connection to the process before.
    await vi.waitFor(() => expect(mcpTool(old, "add", { by: 1 })).rejects.toMatchObject({ code: 401 }), patience);
    expect(await mcpTool(fresh, "add", { by: 1 })).toBe("4");
    await Promise.all([old.close(), fresh.close()]);
    await later.stop();
  });

  test("[S2] keeps no grant of the attempt before, whose token is refused as soon as it is marked as retired", async () => {
    const room = new ResourcesRoom();
    const first = await room.serve(counterWith({ grants: { ttlMs } }));
    const access = await room.granted(episode);
    const cut = await room.checkpoint("c1", [episode]);
    await first.stop();
    const served = await room.serve(counterWith({ grants: { ttlMs } }));
    const old = { ...access, mcpUrl: served.mcpUrl ?? "" };
    const client = await mcpClient(old); // the new process knows it
    await room.mark(episode);
    await vi.waitFor(() => expect(mcpClient(old)).rejects.toMatchObject({ code: 401 }), patience);
    await expect(mcpTool(client, "add", { by: 1 })).rejects.toMatchObject({ code: 401 });
    await room.restore("r1", "c1", cut, [episode]);
    await expect(mcpClient(old)).rejects.toMatchObject({ code: 401 });
    await served.stop();
  });

  test("can be captured again before anybody has claimed it, and restored twice", async () => {
    const room = new ResourcesRoom();
    await room.serve(counterWith({ external: new Shelf() }));
    await room.seed(episode);
    await room.tool(episode, "0/0", "add", { by: 2 });
    const first = await room.checkpoint("c1", [episode]);
    await room.retire(episode);
    await room.restore("r1", "c1", first, [episode]);
    const second = await room.checkpoint("c2", [next]);
    await room.retire(next);
    expect(await room.restore("r2", "c2", second, [next])).not.toHaveProperty("problem");
    expect(await room.tool(episodeOf("r", 2), "1/0", "add", { by: 1 })).toBe("3");
  });
});

test("a stateless server keeps its sessions, so that calls still find them, and is asked to keep nothing else", async () => {
  const echo = defineResources({
    name: "echo",
    mode: "stateless",
    seed: z.looseObject({}),
    tools: {
      echo: {
        description: "says it again",
        input: z.strictObject({ text: z.string() }),
        repeats: true,
        run: async ({ input: { text } }) => ({ result: text }),
      },
    },
    verify: { mode: "replay", run: async () => ({ reward: 1 }) },
  });
  const room = new ResourcesRoom();
  await room.serve(echo);
  await room.seed(episode);
  expect(await room.tool(episode, "0/0", "echo", { text: "a" })).toBe("a");
  const cut = await room.checkpoint("c1", [episode]);
  await room.retire(episode);
  expect(await room.restore("r1", "c1", cut, [episode])).toMatchObject({ installed: [next] });
  expect(await room.tool(next, "1/0", "echo", { text: "b" })).toBe("b");
  expect(await room.verify(next)).toEqual({ reward: 1 });
});

describe("a restore", () => {
  test("[C4] of an invalid state among good ones installs nothing", async () => {
    const external = new Shelf();
    const room = new ResourcesRoom();
    const first = await room.serve(counterWith({ external }));
    const good = ["a", "b", "c"].map((rollout) => episodeOf(rollout));
    for (const one of good) await room.seed(one, { target: 3, odd: one.rollout === "b" });
    const cut = await room.checkpoint("c1", good);
    await room.retire(...good);
    await first.stop();
    external.calls.length = 0;
    const strict = counterWith({ external }, ({ odd }) => odd !== true);
    const served = await room.serve(strict);
    const answer = await room.restore("r1", "c1", cut, good);
    expect(answer.problem).toMatchObject({ code: "invalid_checkpoint_state", details: { rollout: "b" } });
    expect(external.calls).toEqual([]);
    await expect(room.seed(episodeOf("a", 1))).resolves.toMatchObject({ restart: null }); // a fresh one
    expect(external.calls).toEqual(["open a/1"]);
    await served.stop();
  });

  test("[C4] [A18] of which one cannot be installed frees those that were, and leaves nothing parked", async () => {
    const external = new Shelf();
    const room = new ResourcesRoom();
    await room.serve(counterWith({ external }));
    const all = ["a", "b", "c"].map((rollout) => episodeOf(rollout));
    for (const one of all) await room.seed(one);
    const cut = await room.checkpoint("c1", all);
    await room.retire(...all);
    external.failing.install = "b";
    const { answer, end } = await room.beginRestore("r1", "c1", cut, all);
    expect(answer).toMatchObject({ problem: { code: "unavailable" } });
    expect([...external.live.keys()]).toEqual([]);
    await end();
    expect(await room.events("session.restored")).toEqual([]);
    delete external.failing.install;
    expect(await room.restore("r2", "c1", cut, all)).not.toHaveProperty("problem");
    expect([...external.live.keys()].toSorted()).toEqual(["a/1", "b/1", "c/1"]);
  });

  test("that comes to nothing elsewhere frees what was installed here when admission opens", async () => {
    const external = new Shelf();
    const room = new ResourcesRoom();
    await room.serve(counterWith({ external }));
    await room.seed(episode);
    const cut = await room.checkpoint("c1", [episode]);
    await room.retire(episode);
    const { answer, end } = await room.beginRestore("r1", "c1", cut, [episode]);
    expect(answer).not.toHaveProperty("problem");
    expect([...external.live.keys()]).toEqual(["r/1"]);
    const problem = { code: "unavailable" as const, message: "another participant failed" };
    await end(problem);
    await vi.waitFor(() => expect([...external.live.keys()]).toEqual([]), patience);
  });
});

describe("external state", () => {
  test("is captured inside the hold, and its reference stands before the capture in the log", async () => {
    const external = new Shelf();
    const room = new ResourcesRoom();
    await room.serve(counterWith({ external }));
    await room.seed(episode);
    await room.checkpoint("c1", [episode]);
    const types = (await room.all()).map(({ type }) => type);
    expect(types.indexOf("state.exported")).toBeLessThan(types.indexOf("session.captured"));
    expect(await room.events("state.exported")).toEqual([
      { ...episode, checkpointId: "c1", reference: { copy: "c1:r/0" } },
    ]);
  });

  test("[C5] that cannot be captured fails the capture, and everything goes on", async () => {
    const external = new Shelf();
    const room = new ResourcesRoom();
    await room.serve(counterWith({ external }));
    await room.seed(episode);
    external.failing.capture = "r";
    const { answer } = await room.capture("c1", [episode]);
    expect(answer.problem).toMatchObject({ code: "unavailable" });
    await room.resume("c1");
    expect(await room.tool(episode, "0/0", "add", { by: 1 })).toBe("1");
    delete external.failing.capture;
    expect((await room.capture("c2", [episode])).answer).not.toHaveProperty("problem");
  });

  test("[S4] that only dropped checkpoints refer to is what a release leaves out", async () => {
    const external = new Shelf();
    const room = new ResourcesRoom();
    await room.serve(counterWith({ external }));
    await room.seed(episode);
    await room.seed(episodeOf("closed"));
    await room.checkpoint("c1", [episode, episodeOf("closed")]);
    await room.rpc(episodeOf("closed"), "close");
    await room.checkpoint("c2", [episode]);
    expect([...external.copies.keys()]).toEqual(["c1:r/0", "c1:closed/0", "c2:r/0"]);
    await room.release("c2", ["c2"], ["c1"]);
    expect([...external.copies.keys()]).toEqual(["c2:r/0"]);
    await room.release("c2", ["c2"], []);
    expect([...external.copies.keys()]).toEqual(["c2:r/0"]);
    expect([...external.live.keys()]).toEqual(["r/0"]);
    await room.retire(episode);
    await room.restore("r1", "c2", await cutOf(room, "c2"), [episode]);
    expect([...external.live.keys()]).toEqual(["r/1"]);
  });

  test("[S15] is freed by reference, by the next process too; what a capture beside it makes is left alone", async () => {
    const external = new Shelf();
    const room = new ResourcesRoom();
    const first = await room.serve(counterWith({ external }));
    const [one, two] = [episodeOf("one"), episodeOf("two")];
    await room.seed(one);
    await room.seed(two);
    await room.checkpoint("c1", [one, two]);
    await room.checkpoint("c2", [one, two]);
    await first.stop();
    await room.serve(counterWith({ external }));
    external.calls.length = 0;
    external.door = new Door();
    external.waiting = "two";
    await room.asked("prepare", { checkpointId: "c3" });
    const capture = await room.ask("capture", { checkpointId: "c3", scope: [one, two] });
    await external.door.reached; // "one" has been captured, and no event says so yet
    const release = room.release("c2", ["c2"], ["c1"]); // its answer waits until the capture lets it
    await vi.waitFor(() => expect(external.copies.size).toBe(4), patience);
    expect(external.calls.filter((call) => call.startsWith("free")).toSorted()).toEqual([
      "free c1:one/0",
      "free c1:two/0",
    ]);
    expect([...external.copies.keys()].toSorted()).toEqual(["c2:one/0", "c2:two/0", "c3:one/0", "c3:two/0"]);
    external.door.open();
    expect(await room.answerTo(capture.asked)).not.toHaveProperty("problem");
    await room.resume("c3");
    expect(await release).not.toHaveProperty("problem");
    expect(external.live.size).toBe(2);
  });

  test("[C5] of a capture that failed is freed with the next release", async () => {
    const external = new Shelf();
    const room = new ResourcesRoom();
    await room.serve(counterWith({ external }));
    const [good, bad] = [episodeOf("good"), episodeOf("bad")];
    await room.seed(good);
    await room.seed(bad);
    external.failing.capture = "bad";
    await room.capture("c1", [good, bad]);
    await room.resume("c1");
    expect([...external.copies.keys()]).toEqual(["c1:good/0"]);
    delete external.failing.capture;
    await room.checkpoint("c2", [good, bad]);
    await room.release("c2", ["c2"], []);
    expect([...external.copies.keys()].toSorted()).toEqual(["c2:bad/0", "c2:good/0"]);
  });

  test("[S15] that cannot be freed now is freed by a later release, and what else is left is the author's to find", async () => {
    const external = new Shelf();
    const free = vi.fn<typeof external.free>(external.free).mockRejectedValueOnce(new Error("not now"));
    const release = vi.fn<NonNullable<ExternalState["release"]>>().mockResolvedValue();
    const { open, capture, install } = external;
    const room = new ResourcesRoom();
    await room.serve(counterWith({ external: { open, capture, install, free, release } }));
    await room.seed(episode);
    await room.checkpoint("c1", [episode]);
    await room.checkpoint("c2", [episode]);
    expect(await room.release("c2", ["c2"], ["c1"])).toMatchObject({ problem: { code: "unavailable" } });
    expect([...external.copies.keys()]).toEqual(["c1:r/0", "c2:r/0"]);
    expect(await room.release("c2", ["c2"], ["c1"])).not.toHaveProperty("problem");
    expect([...external.copies.keys()]).toEqual(["c2:r/0"]);
    const left = { kept: ["c2"], dropped: ["c1"], references: [{ copy: "c2:r/0" }] };
    expect(release).toHaveBeenCalledExactlyOnceWith(left, expect.any(AbortSignal));
  });
});

function counted({ count }: { readonly count: number }, by: unknown): { count: number } {
  return { count: count + Number(by) };
}

/** The position at which the checkpoint was cut. */
async function cutOf(room: ResourcesRoom, checkpointId: string): Promise<number> {
  const { log } = room;
  for (let sequence = await log.lastSequence(); sequence > 0; sequence -= 1) {
    const { body } = await log.get(sequence);
    const text = new TextDecoder().decode(body);
    if (text.includes('"checkpoint.captured"') && text.includes(`"${checkpointId}"`)) return sequence;
  }
  throw new Error(`${checkpointId} was never cut`);
}
