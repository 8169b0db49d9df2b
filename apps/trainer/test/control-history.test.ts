import type { ControlEvent } from "@holdpoint/schemas";
import { expect, test } from "vitest";
import { ControlHistory } from "../src/control-history.ts";

const stream = "HP_t";

function historyOf(...events: readonly ControlEvent[]): ControlHistory {
  const history = new ControlHistory(stream);
  for (const [at, event] of events.entries()) {
    history.apply({ event, sequence: at + 1, index: 0, subject: "hp.t.control", timeMs: 0, incarnation: "c" });
  }
  return history;
}

const ids = { command: 1, checkpointId: "r1", source: "c1" };
const started: ControlEvent = {
  type: "restore.started",
  data: { ...ids, cut: { [stream]: 40 }, assignments: [{ rollout: "a", from: 0, to: 3 }] },
};
const installed: ControlEvent = { type: "restore.installed", data: { ...ids, receipt: [] } };
const failed: ControlEvent = {
  type: "restore.failed",
  data: { ...ids, problem: { code: "deadline_exceeded", message: "late" } },
};

function resumed(checkpointId: string): ControlEvent {
  return { type: "checkpoint.resumed", data: { command: 1, checkpointId, reason: "command" } };
}

function committed(checkpointId: string): ControlEvent {
  const data = { command: 1, checkpointId, cut: { [stream]: 9 }, anchor: "0".repeat(64), scope: [], holdings: [] };
  return { type: "checkpoint.committed", data: { ...data, capturedAtMs: 1 } };
}

test("[L7] [A12] the attempt that counts is the continuation of an installed restore, exactly", () => {
  const history = historyOf(started, installed);
  expect(history.attemptOf("a")).toBe(3);
  expect(history.isContinued("a")).toBe(true);
  expect(history.attemptOf("b")).toBe(0);
  expect(history.isContinued("b")).toBe(false);
});

test("[L6] a continuation's history is its own, and its origin's up to the cut", () => {
  const history = historyOf(started, installed);
  expect(history.pathOf({ rollout: "a", attempt: 3 })).toEqual([
    { attempt: 0, upTo: 40 },
    { attempt: 3, upTo: Number.POSITIVE_INFINITY },
  ]);
});

test("a restore that is not installed yet changes no attempt", () => {
  expect(historyOf(started).attemptOf("a")).toBe(0);
});

test("[L7] the attempt of a restore that failed is burnt", () => {
  const history = historyOf(started, failed);
  expect(history.attemptOf("a")).toBe(4);
  expect(history.isContinued("a")).toBe(false);
});

test("a continuation that is retired counts no more", () => {
  const marks: ControlEvent = {
    type: "rollouts.marked",
    data: { command: 2, rollouts: [{ rollout: "a", attempt: 3 }] },
  };
  const history = historyOf(started, installed, marks);
  expect(history.attemptOf("a")).toBe(4);
  expect(history.isContinued("a")).toBe(false);
});

test("the most recently resumed id is the one whose first resume is the latest", () => {
  const history = historyOf(resumed("c1"), resumed("c2"), resumed("c1"));
  expect(history.lastResumed).toBe("c2");
  expect(historyOf().lastResumed).toBeUndefined();
});

test("the number of a new id is above all that the log has seen of its prefix", () => {
  const opened: ControlEvent = {
    type: "checkpoint.opened",
    data: { command: 1, checkpointId: "trainer-c7", kind: "checkpoint", deadlineAtMs: 0 },
  };
  const history = historyOf(opened, resumed("trainer-c12"), resumed("trainer-c3"), resumed("c99"));
  expect(history.nextNumber("trainer-c")).toBe(13);
  expect(history.nextNumber("trainer-r")).toBe(1);
});

test("a checkpoint can be restored from its commit to its release", () => {
  const releasing: ControlEvent = {
    type: "checkpoint.releasing",
    data: { command: 1, checkpointId: "c2", kept: ["c2"], dropped: ["c1"] },
  };
  const history = historyOf(committed("c1"), committed("c2"), releasing);
  expect(history.committed).toEqual([{ checkpointId: "c2", cut: 9, scope: [] }]);
});
