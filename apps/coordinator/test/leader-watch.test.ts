import { expect, test } from "vitest";
import { LeaderWatch, type Sign } from "../src/leader-watch.ts";

/** How many questions a watch asks that hears `signs`, in turns for ever, before it finds the leader gone; at most `most`. */
async function askedUntilGone(most: number, ...signs: readonly Sign[]): Promise<number> {
  const stop = new AbortController();
  let asked = 0;
  const watch = new LeaderWatch({
    ask: async () => {
      const sign = signs[asked % signs.length] ?? "unknown";
      asked += 1;
      if (asked > most) stop.abort();
      return sign;
    },
    leader: () => "c1",
    gone: () => stop.abort(),
    pauseMs: () => 0,
  });
  await watch.run(stop.signal);
  return watch.isGone("c1") ? asked : Number.POSITIVE_INFINITY;
}

test("a leader to whose incarnation nobody listens any more is gone, once that was heard four times", async () => {
  expect(await askedUntilGone(100, "absent")).toBe(4);
});

test("one that listens and says nothing is gone only after more questions, each of which takes its time", async () => {
  expect(await askedUntilGone(100, "silent")).toBe(8);
  expect(await askedUntilGone(100, "absent", "silent")).toBe(8);
});

test("one that answers is never gone, however many questions were lost before", async () => {
  expect(await askedUntilGone(100, "absent", "absent", "absent", "alive")).toBe(Number.POSITIVE_INFINITY);
  expect(await askedUntilGone(100, "silent", "silent", "silent", "silent", "alive")).toBe(Number.POSITIVE_INFINITY);
});

test("[L10] a broker that cannot be asked is no death, and all counting begins anew after it", async () => {
  expect(await askedUntilGone(100, "unknown")).toBe(Number.POSITIVE_INFINITY);
  expect(await askedUntilGone(100, "absent", "absent", "absent", "unknown")).toBe(Number.POSITIVE_INFINITY);
});

test("what was heard of one incarnation says nothing of the next", async () => {
  const stop = new AbortController();
  let leader: string | undefined = "c1";
  const asked: string[] = [];
  const watch = new LeaderWatch({
    ask: async (incarnation) => {
      asked.push(incarnation);
      if (asked.length === 3) leader = "c2";
      return "absent";
    },
    leader: () => leader,
    gone: () => stop.abort(),
    pauseMs: () => 0,
  });
  await watch.run(stop.signal);
  expect(asked).toEqual(["c1", "c1", "c1", "c2", "c2", "c2", "c2"]);
  expect(watch.isGone("c1")).toBe(false);
});

test("every sign is told, so that it can be read why somebody took over", async () => {
  const stop = new AbortController();
  const signs: readonly Sign[] = ["alive", "silent", "absent", "unknown"];
  const told: string[] = [];
  const watch = new LeaderWatch({
    ask: async () => signs[told.length] ?? "unknown",
    leader: () => "c1",
    heard: (incarnation, sign) => {
      told.push(`${incarnation} ${sign}`);
      if (told.length === signs.length) stop.abort();
    },
    gone: () => {},
    pauseMs: () => 0,
  });
  await watch.run(stop.signal);
  expect(told).toEqual(["c1 alive", "c1 silent", "c1 absent", "c1 unknown"]);
});

test("[L16] a broker that does not let it ask is a fault, not a death", async () => {
  const refused = new Error("not allowed");
  const watch = new LeaderWatch({
    ask: () => Promise.reject(refused),
    leader: () => "c1",
    gone: () => {},
    pauseMs: () => 0,
  });
  await expect(watch.run(new AbortController().signal)).rejects.toBe(refused);
});
