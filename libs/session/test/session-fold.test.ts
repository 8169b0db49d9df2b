/** The sessions of one process, folded from its log and from what was decided. */
import { keyOf } from "@holdpoint/session";
import { describe, expect, test } from "vitest";
import { holding, Told } from "./sessions.ts";

const r0 = { rollout: "r", attempt: 0 };
const r1 = { rollout: "r", attempt: 1 };
const other = { rollout: "other", attempt: 0 };

/** `r0` is captured by c1 while it awaits the model, then goes on. */
function captured(): Told {
  const told = holding(r0);
  told.say("activation.started", r0);
  told.say("call.requested", r0);
  told.say("session.parked", r0);
  told.capture("c1", r0);
  told.say("session.unparked", r0);
  told.say("call.received", r0, { word: "later" });
  return told;
}

const saidAtC1 = ["session.seeded", "activation.started", "call.requested", "session.parked"];

describe("a session", () => {
  test("is there from the event that opens it, with its place in the log", () => {
    const told = holding(other);
    const sequence = told.say("session.seeded", r0, { word: "hello" });
    expect(told.fold.get(r0)).toEqual({
      ...r0,
      status: { work: "idle", restart: false },
      state: { said: ["session.seeded:hello"], unfinished: null },
      from: undefined,
      claimed: true,
      sequence,
    });
    expect(told.fold.all().map(keyOf)).toEqual(["other/0", "r/0"]);
  });

  test("is not opened by an event of another kind, nor by one that is about no episode", () => {
    const told = new Told();
    told.say("call.requested", r0);
    told.sayOfNone("session.seeded", { rollout: "r" });
    told.sayOfNone("session.seeded", { attempt: 0 });
    told.sayOfNone("session.seeded", { rollout: 7, attempt: 0 });
    told.sayOfNone("session.seeded", { rollout: "r", attempt: "0" });
    told.sayOfNone("participant.left", {});
    expect(told.fold.all()).toEqual([]);
  });

  test("changes with each event about it, and with none about another", () => {
    const told = holding(r0, other);
    const sequence = told.say("activation.started", r0);
    expect(told.fold.get(r0)).toMatchObject({ sequence, status: { work: "running" } });
    expect(told.fold.get(r0)?.state.said).toEqual(["session.seeded", "activation.started"]);
    expect(told.fold.get(other)).toMatchObject({ sequence: 2, status: { work: "idle" } });
  });

  test("of one attempt is another than that of the next", () => {
    const told = holding(r0, r1);
    told.say("activation.started", r1);
    expect(told.fold.get(r0)?.status.work).toBe("idle");
    expect(told.fold.get(r1)?.status.work).toBe("running");
  });

  test.each(["session.closed", "session.retired", "episode.ended"])(
    "is no more after %s, and the others stay",
    (end) => {
      const told = holding(r0, other);
      told.say(end, r0);
      expect(told.fold.get(r0)).toBeUndefined();
      expect(told.fold.all().map(keyOf)).toEqual(["other/0"]);
      told.say("call.received", r0);
      expect(told.fold.get(r0)).toBeUndefined();
    },
  );

  test("that is marked a restart is one, and goes on", () => {
    const told = holding(r0);
    told.say("session.restart_marked", r0, { why: "no" });
    told.say("activation.started", r0);
    expect(told.fold.get(r0)?.status).toEqual({ work: "running", restart: true });
  });
});

describe("what a checkpoint fixed", () => {
  test("is the state at the capture, whatever follows", () => {
    const told = captured();
    expect(told.fold.fixedBy("c1")?.map(({ state }) => state.said)).toEqual([saidAtC1]);
    told.say("session.closed", r0);
    expect(told.fold.fixedBy("c1")?.map(({ state }) => state.said)).toEqual([saidAtC1]);
    expect(told.fold.fixedBy("c1")?.[0]).toMatchObject({ ...r0, status: { work: "parked" }, claimed: true });
  });

  test("leaves out what a checkpoint does not hold, and the session keeps it", () => {
    const told = holding(r0);
    told.say("draft", r0);
    told.capture("c1", r0);
    expect(told.fold.fixedBy("c1")?.[0]?.state).toEqual({ said: ["session.seeded"], unfinished: null });
    expect(told.fold.get(r0)?.state).toEqual({ said: ["session.seeded"], unfinished: "draft" });
  });

  test("is not known where this process was not asked", () => {
    const told = holding(r0);
    told.ask("prepare", "c1");
    told.ask("capture", null);
    expect(told.fold.fixedBy("c1")).toBeUndefined();
    told.ask("capture", "c1");
    expect(told.fold.fixedBy("c1")).toEqual([]);
  });

  test("[L4] begins anew with each ask: a refused cut is captured again", () => {
    const told = holding(r0, other);
    told.capture("c1", r0, other);
    told.say("activation.started", r0);
    told.capture("c1", r0);
    expect(told.fold.fixedBy("c1")?.map((session) => [keyOf(session), session.state.said])).toEqual([
      ["r/0", ["session.seeded", "activation.started"]],
    ]);
  });

  test("holds no session that is not live, and none of a capture that does not say its checkpoint", () => {
    const told = holding(r0);
    told.ask("capture", "c1");
    told.say("session.captured", other, { checkpointId: "c1" });
    told.say("session.captured", r0, { checkpointId: 7 });
    told.say("session.captured", r0);
    expect(told.fold.fixedBy("c1")).toEqual([]);
  });

  test("also counts where the ask is not in the part of the log that is read", () => {
    const told = holding(r0, other);
    for (const episode of [r0, other]) told.say("session.captured", episode, { checkpointId: "c1" });
    expect(told.fold.fixedBy("c1")?.map(keyOf)).toEqual(["r/0", "other/0"]);
  });

  test("of several checkpoints is kept apart, until a release does not keep it", () => {
    const told = captured();
    told.capture("c2", r0);
    told.capture("c3", r0);
    told.released("c2");
    expect(told.fold.fixedBy("c1")).toBeUndefined();
    expect(told.fold.fixedBy("c2")?.[0]?.state.said).toEqual([...saidAtC1, "session.unparked", "call.received:later"]);
    expect(told.fold.fixedBy("c3")).toBeUndefined();
    told.released();
    expect(told.fold.fixedBy("c2")).toBeUndefined();
  });
});

describe("a restore", () => {
  test("[L8] counts for nothing until it is installed everywhere", () => {
    const told = captured();
    told.ask("restore", "x1");
    told.restore("x1", "c1", r0, 1);
    expect(told.fold.get(r1)).toBeUndefined();
    expect(told.fold.pendingOf("x1").map(keyOf)).toEqual(["r/1"]);
    expect(told.fold.pendingOf("x2")).toEqual([]);
    told.installed("x1", "c1");
    expect(told.fold.pendingOf("x1")).toEqual([]);
    expect(told.fold.get(r1)).toBeDefined();
  });

  test("[L7] goes on under its new attempt from what its source fixed, at the boundary, and is not claimed", () => {
    const told = captured();
    told.ask("restore", "x1");
    told.restore("x1", "c1", r0, 1);
    const sequence = 9;
    told.installed("x1", "c1");
    expect(told.fold.get(r1)).toEqual({
      ...r1,
      status: { work: "at_boundary", restart: false },
      state: { said: saidAtC1, unfinished: null },
      from: { attempt: 0, source: "c1" },
      claimed: false,
      sequence: expect.any(Number),
    });
    expect(told.fold.get(r1)?.sequence).toBeGreaterThan(sequence);
  });

  test("is claimed by the seed of its new attempt, and keeps what it has", () => {
    const told = captured();
    told.ask("restore", "x1");
    told.restore("x1", "c1", r0, 1);
    told.installed("x1", "c1");
    told.say("call.requested", r1);
    expect(told.fold.get(r1)?.claimed).toBe(false);
    told.say("session.seeded", r1, { word: "again" });
    told.say("call.received", r1);
    expect(told.fold.get(r1)).toMatchObject({ claimed: true, from: { attempt: 0, source: "c1" } });
    expect(told.fold.get(r1)?.state.said).toEqual([
      ...saidAtC1,
      "call.requested",
      "session.seeded:again",
      "call.received",
    ]);
  });

  test("[S1] that is captured before it is claimed is exported as it was", () => {
    const told = captured();
    told.ask("restore", "x1");
    told.restore("x1", "c1", r0, 1);
    told.installed("x1", "c1");
    told.capture("c2", r1);
    expect(told.fold.fixedBy("c2")?.[0]).toMatchObject({ ...r1, state: { said: saidAtC1 }, claimed: false });
    told.ask("restore", "x2");
    told.restore("x2", "c2", r1, 2);
    told.installed("x2", "c2");
    expect(told.fold.get({ rollout: "r", attempt: 2 })).toMatchObject({
      state: { said: saidAtC1 },
      from: { attempt: 1, source: "c2" },
    });
  });

  test("what it rebuilds before it is installed belongs to it, and what it closes is gone", () => {
    const told = captured();
    told.ask("restore", "x1");
    told.restore("x1", "c1", r0, 1);
    told.say("sandbox.lent", r1);
    expect(told.fold.pendingOf("x1")[0]?.state.said).toEqual([...saidAtC1, "sandbox.lent"]);
    expect(told.fold.get(r0)?.state.said).not.toContain("sandbox.lent");
    told.say("session.retired", r1);
    told.installed("x1", "c1");
    expect(told.fold.get(r1)).toBeUndefined();
    expect(told.fold.get(r0)).toBeDefined();
  });

  test("that failed leaves nothing, also of what a slow process says after that", () => {
    const told = captured();
    told.ask("restore", "x1");
    told.restore("x1", "c1", r0, 1);
    told.failed("x1", "c1");
    expect(told.fold.pendingOf("x1")).toEqual([]);
    told.restore("x1", "c1", r0, 1);
    told.installed("x1", "c1");
    expect(told.fold.pendingOf("x1")).toEqual([]);
    expect(told.fold.get(r1)).toBeUndefined();
  });

  test("[A11] of the same checkpoint twice gives two attempts that start alike", () => {
    const told = captured();
    for (const [id, attempt] of [
      ["x1", 1],
      ["x2", 2],
    ] as const) {
      told.ask("restore", id);
      told.restore(id, "c1", r0, attempt);
      told.installed(id, "c1");
      told.say("session.retired", { rollout: "r", attempt: 1 });
    }
    expect(told.fold.get({ rollout: "r", attempt: 2 })?.state.said).toEqual(saidAtC1);
  });

  test("of what the source does not hold gives nothing", () => {
    const told = captured();
    told.ask("restore", "x1");
    told.restore("x1", "c1", other, 1);
    told.restore("x1", "c0", r0, 1);
    told.restore("x1", "c1", r1, 2);
    for (const missing of ["checkpointId", "source", "from"]) {
      const all = { checkpointId: "x1", source: "c1", from: 0 };
      const some = Object.fromEntries(Object.entries(all).filter(([name]) => name !== missing));
      told.say("session.restored", r1, some);
    }
    told.say("session.restored", r1, { checkpointId: "x1", source: "c1", from: "0" });
    expect(told.fold.pendingOf("x1")).toEqual([]);
  });

  test("counts only where a restore was asked for", () => {
    const told = captured();
    told.restore("x1", "c1", r0, 1);
    told.ask("capture", "x1");
    told.restore("x1", "c1", r0, 1);
    told.ask("restore", null);
    expect(told.fold.pendingOf("x1")).toEqual([]);
    const before = told.fold.all();
    told.installed("x1", "c1");
    told.installed("x9", "c1");
    expect(told.fold.all()).toEqual(before);
  });

  test("of several sessions installs them all, and another restore's none", () => {
    const told = holding(r0, other);
    told.capture("c1", r0, other);
    for (const id of ["x1", "x2"]) told.ask("restore", id);
    told.restore("x1", "c1", r0, 1);
    told.restore("x1", "c1", other, 1);
    told.restore("x2", "c1", r0, 2);
    told.installed("x1", "c1");
    expect(told.fold.all().map(keyOf)).toEqual(["r/0", "other/0", "r/1", "other/1"]);
    expect(told.fold.pendingOf("x2").map(keyOf)).toEqual(["r/2"]);
  });
});

test("what may still be asked for is what is live, what is fixed and what waits to be installed", () => {
  const told = holding(r0, other);
  told.capture("c1", r0);
  told.ask("restore", "x1");
  told.restore("x1", "c1", r0, 1);
  told.say("session.retired", r0);
  expect(told.fold.held().map(keyOf)).toEqual(["other/0", "r/0", "r/1"]);
  told.failed("x1", "c1");
  told.released();
  expect(told.fold.held().map(keyOf)).toEqual(["other/0"]);
});

test("decisions that are not about sessions leave them as they are", () => {
  const told = captured();
  const before = told.fold.all();
  told.decide({ type: "checkpoint.proceeded", data: { command: 1, checkpointId: "c1" } });
  told.decide({ type: "checkpoint.resumed", data: { command: 1, checkpointId: "c1", reason: "command" } });
  told.ask("resume", "c1");
  expect(told.fold.all()).toEqual(before);
  expect(told.fold.fixedBy("c1")).toHaveLength(1);
});
