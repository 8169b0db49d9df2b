import { eventSchema, type Recorded } from "@holdpoint/eventsourcing";
import { type Content, type LogEventOf, logEvents } from "@holdpoint/schemas";
import { hash } from "node:crypto";
import { expect, test } from "vitest";
import { finishedCall, repairKind, type RepairSession, snapshotsOf } from "../src/repair-session.ts";

type Event = LogEventOf<"resources">;
type EventOf<Type extends Event["type"]> = Extract<Event, { type: Type }>["data"];

const sha256 = (text: string): string => hash("sha256", text);
const kind = repairKind(sha256);
const { schema } = eventSchema(logEvents.resources);
const episode = { rollout: "r", attempt: 0 };
let sequence = 0;

function content(text: string): Content {
  return { digest: sha256(text), bytes: text.length, text };
}

function recorded(event: Event): Recorded<Event> {
  sequence += 1;
  return { event: schema.parse(event), sequence, index: 0, subject: "log", timeMs: 0, incarnation: "i" };
}

/** The state after `events`, the first of which opens it. */
function after(...events: readonly Event[]): RepairSession {
  const [first, ...rest] = events.map((event) => recorded(event));
  const opened = first === undefined ? undefined : kind.open(first.event, first);
  if (opened === undefined) throw new Error("not opened");
  return rest.reduce((state, record) => kind.evolve(state, record.event, record), opened);
}

const seeded: Event = {
  type: "session.seeded",
  data: { ...episode, sessionId: "s", seed: content("{}"), sandbox: "box-1" },
};

function taken(snapshot: string, checkpointId: string | null): Event {
  const data = { ...episode, snapshot, sandbox: "box-1", checkpointId, digest: sha256(snapshot), provider: "dir" };
  return { type: "snapshot.taken", data };
}

function started(turn: number, index: number, snapshot: string | null): Event {
  return {
    type: "tool.started",
    data: { ...episode, turn, index, name: "run_tests", arguments: sha256("{}"), snapshot },
  };
}

function finished(turn: number, index: number, text: string): Event {
  const data: EventOf<"tool.finished"> = { ...episode, turn, index, execution: "x", result: content(text) };
  return { type: "tool.finished", data };
}

function lent(sandbox: string): Event {
  return { type: "sandbox.lent", data: { ...episode, sandbox, from: "call-1" } };
}

test("[L3] a call that has started and not finished is known, with the snapshot from before it", () => {
  const state = after(seeded, taken("call-1", null), started(0, 0, "call-1"));
  expect(state.started).toMatchObject({ turn: 0, index: 0, snapshot: { snapshotId: "call-1", provider: "dir" } });
  expect(snapshotsOf(state).map(({ snapshotId }) => snapshotId)).toContain("call-1");
});

test("[L3] a call whose snapshot the log does not know has one that cannot be forked, not none", () => {
  expect(after(seeded, started(0, 0, "call-1")).started?.snapshot).toMatchObject({
    snapshotId: "call-1",
    provider: "",
  });
});

test("[L3] a rolled back call never started, and its snapshot is not needed any more", () => {
  const state = after(seeded, taken("call-1", null), started(0, 0, "call-1"), lent("box-2"));
  expect(state).toMatchObject({ sandbox: "box-2", started: null });
  expect(snapshotsOf(state)).toEqual([]);
  expect(finishedCall(state, { turn: 0, index: 0 })).toBeUndefined();
});

test("[L3] a finished call is found by its name, whatever came after; no other is", () => {
  const calls = [0, 1, 2].flatMap((turn) =>
    [0, 1].flatMap((index) => [started(turn, index, null), finished(turn, index, `${turn}/${index}`)]),
  );
  const state = after(seeded, ...calls);
  for (const turn of [0, 1, 2]) {
    for (const index of [0, 1]) {
      expect(finishedCall(state, { turn, index })?.digest).toBe(sha256(`${turn}/${index}`));
    }
  }
  expect(finishedCall(state, { turn: 2, index: 2 })).toBeUndefined();
  expect(finishedCall(state, { turn: 3, index: 0 })).toBeUndefined();
});

test("[L5] the edge is how many calls have finished, and the digest of the latest result", () => {
  const state = after(seeded, started(0, 0, null), finished(0, 0, "a"), started(0, 1, null), finished(0, 1, "b"));
  expect(kind.edges(after(seeded))).toEqual({ tools: { received: 0, last: null } });
  expect(kind.edges(state)).toEqual({ tools: { received: 2, last: sha256("b") } });
});

test("a checkpoint's snapshot stays the session's until the next one, whatever calls come after", () => {
  const state = after(
    seeded,
    taken("cut-1", "c1"),
    taken("call-1", null),
    started(0, 0, "call-1"),
    finished(0, 0, "a"),
  );
  expect(state.snapshot).toMatchObject({ snapshotId: "cut-1", checkpointId: "c1" });
  expect(snapshotsOf(state).map(({ snapshotId }) => snapshotId)).toEqual(["cut-1"]);
});

test("[S18] a repeated seed changes nothing of what was done", () => {
  const before = after(seeded, started(0, 0, null), finished(0, 0, "a"));
  expect(after(seeded, started(0, 0, null), finished(0, 0, "a"), seeded).chain).toBe(before.chain);
});

test("the summary tells histories apart, and does not grow with them", () => {
  const one = after(seeded, started(0, 0, null), finished(0, 0, "a"));
  const other = after(seeded, started(0, 0, null), finished(0, 0, "b"));
  expect(kind.summary(one)).not.toEqual(kind.summary(other));
  const many = Array.from({ length: 100 }, (_, turn) => [started(turn, 0, null), finished(turn, 0, "x".repeat(100))]);
  expect(JSON.stringify(kind.summary(after(seeded, ...many.flat()))).length).toBeLessThan(500);
});

test("[F3] of the results of many calls only the latest text is held", () => {
  const many = Array.from({ length: 100 }, (_, turn) => [started(turn, 0, null), finished(turn, 0, `result ${turn}`)]);
  const held = JSON.stringify(after(seeded, ...many.flat()));
  expect(held.match(/result \d+/g)).toEqual(["result 99"]);
});
