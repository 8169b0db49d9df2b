/** Several workers of one resources server: who answers, and what becomes of what one held that is gone. */
import type { Episode } from "@holdpoint/schemas";
import { describe, expect, test } from "vitest";
import { counterWith, Door, type Parts, Shelf } from "./resources-counter.ts";
import { mcpClient, mcpTool } from "./resources-mcp-client.ts";
import { episodeOf, ResourcesRoom } from "./resources-room.ts";

const ttlMs = 1_000_000;
const episodes = ["a", "b", "c", "d", "e", "f", "g", "h"].map((rollout) => episodeOf(rollout));

/** Two workers that share the episodes, each of which has counted to 2. */
async function pair(parts: Parts = {}) {
  const room = new ResourcesRoom();
  const first = await room.serve(counterWith(parts));
  const second = await room.serve(counterWith(parts), { worker: "1" });
  for (const episode of episodes) {
    await room.seed(episode);
    await room.tool(episode, "0/0", "add", { by: 2 });
  }
  const lose = async () => {
    await second.stop();
    await room.remove("1");
  };
  return { room, first, second, lose, ofSecond: await seededBy(room, "1") };
}

async function seededBy(room: ResourcesRoom, worker: string): Promise<readonly Episode[]> {
  const seeded = (await room.all([worker])).filter(({ type }) => type === "session.seeded");
  return episodes.filter(({ rollout }) => seeded.some(({ data }) => "rollout" in data && data.rollout === rollout));
}

function after(ofThese: readonly Episode[]): readonly Episode[] {
  return ofThese.map(({ rollout, attempt }) => episodeOf(rollout, attempt + 1));
}

function copiesOf(checkpointId: string, ofThese: readonly Episode[]): readonly string[] {
  return ofThese.map(({ rollout, attempt }) => `${checkpointId}:${rollout}/${attempt}`);
}

describe("of two workers", () => {
  test("each is given some of the sessions, and no session is given to both", async () => {
    const { room, ofSecond } = await pair();
    const ofFirst = await seededBy(room, "0");
    expect([ofFirst.length, ofSecond.length]).not.toContain(0);
    expect(ofFirst.length + ofSecond.length).toBe(episodes.length);
  });

  test("the one that holds a session answers its calls, its verify and its repeated seed", async () => {
    const { room, ofSecond } = await pair();
    for (const episode of episodes) {
      expect(await room.tool(episode, "1/0", "add", { by: 1 })).toBe("3");
      expect(await room.seed(episode)).toMatchObject({ restart: null });
      expect(await room.verify(episode)).toEqual({ reward: 1 });
    }
    const judged = (await room.all(["1"])).filter(({ type }) => type === "verify.finished");
    expect(judged).toHaveLength(ofSecond.length);
    expect(await room.events("session.seeded")).toHaveLength(episodes.length);
  });

  test("[S16] both hold calls while a checkpoint is open, and answer them once it is over", async () => {
    const { room } = await pair();
    await room.asked("prepare", { checkpointId: "c1" });
    const held = episodes.map((episode) => room.tool(episode, "1/0", "add", { by: 1 }));
    await room.asked("commit", { checkpointId: "c1" });
    expect(await room.events("tool.started")).toHaveLength(episodes.length);
    await room.resume("c1");
    expect(await Promise.all(held)).toEqual(episodes.map(() => "3"));
  });
});

describe("what a lost worker held", () => {
  test("[S18] the other takes over as it was fixed, and goes on with it", async () => {
    const { room, lose, ofSecond } = await pair({ external: new Shelf() });
    const cut = await room.checkpoint("c1", episodes);
    await lose();
    await room.retire(...episodes);
    const answer = await room.restore("x1", "c1", cut, episodes);
    expect(answer.installed?.toSorted(byRollout)).toEqual(after(episodes));
    expect(answer.adopted).toMatchObject([{ worker: "1" }]);
    for (const episode of after(ofSecond)) {
      await room.seed(episode);
      expect(await room.tool(episode, "0/0", "add", { by: 2 })).toBe("2"); // as before the cut
      expect(await room.tool(episode, "1/0", "add", { by: 1 })).toBe("3");
    }
  });

  test("[L9] is still there when the other has crashed after taking it over", async () => {
    const { room, first, lose, ofSecond } = await pair();
    const cut = await room.checkpoint("c1", episodes);
    await lose();
    await room.retire(...episodes);
    await room.restore("x1", "c1", cut, episodes);
    await first.stop();
    await room.serve(counterWith());
    for (const episode of after(ofSecond)) {
      expect(await room.tool(episode, "0/0", "add", { by: 2 })).toBe("2");
      expect(await room.tool(episode, "1/0", "add", { by: 1 })).toBe("3");
    }
  });

  test("[S2] is opened by the tokens of the new attempt alone", async () => {
    const { room, first, second, ofSecond } = await pair({ grants: { ttlMs } });
    const [episode] = ofSecond;
    if (episode === undefined) throw new Error("the second worker has no session");
    const old = await room.grant(episode);
    const cut = await room.checkpoint("c1", episodes);
    await second.stop();
    await room.remove("1");
    await room.retire(...episodes);
    await room.restore("x1", "c1", cut, episodes);
    const [next] = after([episode]);
    const fresh = await room.granted(next ?? episode);
    await expect(mcpClient({ ...fresh, token: old.token })).rejects.toMatchObject({ code: 401 });
    const client = await mcpClient(fresh);
    expect(await mcpTool(client, "add", { by: 1 })).toBe("3");
    await client.close();
    await first.stop();
  });

  test("[S15] outside the log is freed when no checkpoint needs it any more, and not before", async () => {
    const external = new Shelf();
    const { room, lose } = await pair({ external });
    const first = await room.checkpoint("c1", episodes);
    await lose();
    await room.retire(...episodes);
    const { end } = await room.beginRestore("x1", "c1", first, episodes);
    await room.release("c1", ["c1"], []);
    await end();
    await room.release("c1", ["c1"], []);
    await room.checkpoint("c2", after(episodes));
    await room.release("c2", ["c1", "c2"], []);
    expect([...external.copies.keys()].toSorted()).toEqual([
      ...copiesOf("c1", episodes),
      ...copiesOf("c2", after(episodes)),
    ]);
    await room.retire(...after(episodes));
    const again = await room.restore("x2", "c1", first, episodes);
    expect(again).not.toHaveProperty("problem");
    expect(after(episodes).map((episode) => external.live.get(`${episode.rollout}/1`))).toEqual(episodes.map(() => 0));
  });

  test("[S15] outside the log is freed with the last checkpoint that needs it, beside live seeds", async () => {
    const external = new Shelf();
    const { room, lose } = await pair({ external });
    const first = await room.checkpoint("c1", episodes);
    await lose();
    await room.retire(...episodes);
    await room.restore("x1", "c1", first, episodes);
    await room.checkpoint("c2", after(episodes));
    external.door = new Door();
    const seed = room.seed(episodeOf("live"));
    await external.door.reached;
    await room.release("c2", ["c2"], ["c1"]);
    external.door.open();
    await seed;
    expect([...external.copies.keys()].toSorted()).toEqual(copiesOf("c2", after(episodes)));
    expect([...external.live.keys()]).toContain("live/0");
  });
});

function byRollout(one: Episode, other: Episode): number {
  return one.rollout < other.rollout ? -1 : 1;
}
