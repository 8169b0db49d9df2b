import { expect, test } from "vitest";
import { weaknessesOf } from "../src/durability.ts";

const strong = { serverVersion: "2.15.1", syncAlways: true, replicas: 1, persistMode: "default" };

test("[F8] a stream as nats.conf makes it has no weakness", () => {
  expect(weaknessesOf(strong, false)).toEqual([]);
});

test.each([
  [{ ...strong, syncAlways: false }, /sync_interval is not always/],
  [{ ...strong, persistMode: "async" }, /persist_mode is async/],
])("[F8] one that can lose what it has acknowledged is refused, unless that is allowed", (promise, words) => {
  expect(() => weaknessesOf(promise, false)).toThrow(words);
  expect(() => weaknessesOf(promise, false)).toThrow(/nats\.conf of Holdpoint, or set HOLDPOINT_ALLOW_WEAK=yes/);
  expect(weaknessesOf(promise, true)).toEqual([expect.stringMatching(words)]);
});

test("one that is not known is used, with a warning that says how it can be known", () => {
  expect(weaknessesOf({ ...strong, syncAlways: null }, false)).toEqual([
    "whether the server syncs every write is not known: set HOLDPOINT_MONITOR_URL",
  ]);
});
