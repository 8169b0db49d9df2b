import { StreamClock } from "@holdpoint/participant";
import { expect, test } from "vitest";

/** A clock whose stream is `aheadMs` behind the local time. */
function clockAt(localMs: number) {
  const local = { nowMs: localMs };
  return { local, clock: new StreamClock(() => local.nowMs) };
}

test("until a message is seen it is the local clock", () => {
  expect(clockAt(5000).clock.nowMs()).toBe(5000);
});

test("between messages it goes on with the local clock, from the timestamp of the latest", () => {
  const { local, clock } = clockAt(10_000);
  clock.see(3000);
  local.nowMs += 250;

  expect(clock.nowMs()).toBe(3250);
});

test("a message that was long on its way does not set it back", () => {
  const { local, clock } = clockAt(10_000);
  clock.see(3000);
  local.nowMs += 1000;
  clock.see(3400); // seen 600 late

  expect(clock.nowMs()).toBe(4000);
});

test("messages of a log that is read after a crash do not count as fresh once one is", () => {
  const { local, clock } = clockAt(100_000);
  clock.see(1000);
  clock.see(2000);
  local.nowMs += 50;
  clock.see(99_000);

  expect(clock.nowMs()).toBe(99_000);
});

test("a local clock that was set on is believed after a while", () => {
  const { local, clock } = clockAt(10_000);
  clock.see(10_000);
  local.nowMs += 3_600_000;
  clock.see(10_100);
  local.nowMs += 30_000;
  clock.see(40_100);

  expect(clock.nowMs()).toBe(40_100);
});

test("it never goes back before the latest message", () => {
  const { local, clock } = clockAt(10_000);
  clock.see(3000);
  local.nowMs -= 2000;

  expect(clock.nowMs()).toBe(3000);
});
