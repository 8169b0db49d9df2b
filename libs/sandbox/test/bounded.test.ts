import { expect, test } from "vitest";
import { mapBounded } from "../src/bounded.ts";

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

test("at most as many are worked on at once as there are lanes, and results come in the order of the items", async () => {
  let now = 0;
  let most = 0;
  const items = Array.from({ length: 50 }, (_, index) => index);
  const results = await mapBounded(items, 16, async (item) => {
    now += 1;
    most = Math.max(most, now);
    for (let rest = item % 7; rest > 0; rest -= 1) await turn();
    now -= 1;
    return item * 2;
  });
  expect(most).toBe(16);
  expect(results).toEqual(items.map((item) => item * 2));
});

test("after a failure nothing new is begun, and what had begun is waited for", async () => {
  const begun: number[] = [];
  const ended: number[] = [];
  const work = mapBounded([0, 1, 2, 3, 4], 2, async (item) => {
    begun.push(item);
    if (item === 0) throw new Error("broken");
    await turn();
    ended.push(item);
    return item;
  });
  await expect(work).rejects.toThrow("broken");
  expect(begun).toEqual([0, 1]);
  expect(ended).toEqual([1]);
});

test("nothing to do is done at once", async () => {
  expect(await mapBounded([], 16, async () => 1)).toEqual([]);
});
