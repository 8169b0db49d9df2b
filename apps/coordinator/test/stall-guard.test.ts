import { expect, test } from "vitest";
import { StallGuard } from "../src/stall-guard.ts";

const patienceMs = 2_000;

/** A guard whose clock and broker are the test's; `answers`: what the broker owes, the oldest first. */
function guarded() {
  const answers: { resolve: () => void; reject: (error: Error) => void }[] = [];
  const time = { nowMs: 1_000_000 };
  const guard = new StallGuard({
    clock: () => time.nowMs,
    roundTrip: () => new Promise<void>((resolve, reject) => void answers.push({ resolve, reject })),
    patienceMs,
  });
  const proveNow = async () => {
    const proving = guard.prove();
    answers.shift()?.resolve();
    await proving;
  };
  return { guard, time, answers, proveNow };
}

test("nothing is known to be prompt before the broker has answered once", async () => {
  const { guard, proveNow } = guarded();
  expect(guard.isPrompt()).toBe(false);
  await proveNow();
  expect(guard.isPrompt()).toBe(true);
});

test("what comes within the patience after the beginning of a round trip is prompt, and what comes later is not", async () => {
  const { guard, time, proveNow } = guarded();
  await proveNow();
  time.nowMs += patienceMs;
  expect(guard.isPrompt()).toBe(true);
  time.nowMs += 1;
  expect(guard.isPrompt()).toBe(false);
  await proveNow();
  expect(guard.isPrompt()).toBe(true);
});

test("an answer to a question from before a stop proves nothing of what was queued behind it", async () => {
  const { guard, time, answers, proveNow } = guarded();
  await proveNow();
  const proving = guard.prove();
  time.nowMs += 180_000;
  answers.shift()?.resolve();
  await proving;
  expect(guard.isPrompt()).toBe(false);
  await proveNow();
  expect(guard.isPrompt()).toBe(true);
});

test("one question at a time is on its way", async () => {
  const { guard, answers } = guarded();
  const proving = [guard.prove(), guard.prove(), guard.prove()];
  expect(answers).toHaveLength(1);
  answers.shift()?.resolve();
  await Promise.all(proving);
  expect(guard.isPrompt()).toBe(true);
});

test("[L10] a connection that breaks proves nothing, and the next question is asked anew", async () => {
  const { guard, answers, proveNow } = guarded();
  const proving = guard.prove();
  answers.shift()?.reject(new Error("the connection broke"));
  await proving;
  expect(guard.isPrompt()).toBe(false);
  await proveNow();
  expect(guard.isPrompt()).toBe(true);
});

test("a clock that was set back proves nothing until the broker has answered again", async () => {
  const { guard, time, proveNow } = guarded();
  await proveNow();
  time.nowMs -= 60_000;
  expect(guard.isPrompt()).toBe(false);
  await proveNow();
  expect(guard.isPrompt()).toBe(true);
});
