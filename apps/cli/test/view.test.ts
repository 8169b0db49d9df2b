import { expect, test } from "vitest";
import type { Progress } from "../src/demo/progress.ts";
import { viewOn } from "../src/demo/view.ts";

const none: Progress = {
  calls: 0,
  tools: 0,
  opened: 0,
  finished: 0,
  checkpoints: 0,
  restorable: 0,
  restores: 0,
  groups: 0,
  isClosed: false,
};

/** A screen that keeps what is written, and a clock that a test moves on. */
function screen(isTTY: boolean) {
  const written: string[] = [];
  const clock = { nowMs: 0 };
  const view = viewOn({ isTTY, columns: 100, write: (text) => written.push(text) }, () => clock.nowMs);
  return { view, clock, text: () => written.join("") };
}

test("without a terminal there is a line for each rollout that finishes, and no control characters", () => {
  const { view, text } = screen(false);
  view.begin("calm", 4);
  for (const finished of [0, 0, 1, 1, 2]) view.progress({ ...none, finished, calls: finished * 9 });

  expect(text()).toBe("run calm: 4 rollouts\ncalm: 1/4 rollouts  9 calls  0 s\ncalm: 2/4 rollouts  18 calls  0 s\n");
});

test("without a terminal a run in which nothing finishes still says now and then how far it is", () => {
  const { view, clock, text } = screen(false);
  view.begin("calm", 4);
  clock.nowMs = 6000;
  view.progress({ ...none, calls: 3 });

  expect(text()).toContain("calm: 0/4 rollouts  3 calls  6 s\n");
});

test("on a terminal the bars are drawn over, and sentences stay above them", () => {
  const { view, clock, text } = screen(true);
  view.begin("calm", 4);
  clock.nowMs = 1000;
  view.progress({ ...none, finished: 2, calls: 20 });
  view.tell("kill -9 of agent");
  view.begin("chaos", 4);
  view.end();

  const last = text().split("\u001B[J").at(-1);
  expect(last).toMatch(/^calm {3}█{12}░{12} 2\/4 rollouts {2}20 calls {2}1 s\nchaos {2}░{24} 0\/4 rollouts/);
  expect(text()).toContain("\u001B[1A\u001B[Jkill -9 of agent\n");
});
