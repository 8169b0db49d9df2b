import {
  answered,
  type Ask,
  evolveGate,
  initialGate,
  isRefused,
  isStale,
  leaseExpired,
  obligationsOf,
  type ParticipantGate,
} from "@holdpoint/checkpoint";
import type { ControlEvent, Role } from "@holdpoint/schemas";
import { describe, expect, test } from "vitest";

const everyone: Role[] = ["environment", "model", "agent", "resources"];

/** A gate that is shown control events one sequence after the other, from 1. */
class Shown {
  gate: ParticipantGate;
  sequence = 0;

  constructor(role: Role = "agent") {
    this.gate = initialGate(role);
  }

  show(...events: readonly ControlEvent[]): this {
    for (const event of events) {
      this.sequence += 1;
      const place = { sequence: this.sequence, index: 0, subject: "hp.demo.control", incarnation: "c" };
      this.gate = evolveGate(this.gate, { event, ...place, timeMs: this.sequence * 1000 });
    }
    return this;
  }

  answer(at: number, problem?: object): this {
    this.gate = answered(this.gate, { asked: at, ...(problem !== undefined && { problem }) });
    return this;
  }

  get owed(): string[] {
    return obligationsOf(this.gate).map(({ sequence, ask }) => `${ask.operation}@${sequence}`);
  }
}

function asked(operation: Ask["operation"], checkpointId: string | null = "c1", more: Partial<Ask> = {}): ControlEvent {
  const data = { command: 10, operation, roles: everyone, checkpointId, remainingMs: 5000, ...more };
  return { type: "participants.asked", data };
}

const resumed: ControlEvent = {
  type: "checkpoint.resumed",
  data: { command: 11, checkpointId: "c1", reason: "command" },
};
const captured: ControlEvent = {
  type: "checkpoint.captured",
  data: { command: 10, checkpointId: "c1", stream: "HP_demo", scope: [], holdings: [] },
};
const failed: ControlEvent = {
  type: "command.failed",
  data: { command: 10, problem: { code: "deadline_exceeded", message: "late" } },
};
const prepared: ControlEvent = {
  type: "checkpoint.prepared",
  data: { command: 10, checkpointId: "c1", restarts: [], continued: [] },
};

describe("an ask", () => {
  test("is owed until it is answered, with its time and its payload, in order", () => {
    const shown = new Shown().show(
      asked("retire", null, { rollouts: [{ rollout: "r1", attempt: 0 }] }),
      asked("forget", null),
    );
    expect(obligationsOf(shown.gate)).toEqual([
      { sequence: 1, askedAtMs: 1000, ask: expect.objectContaining({ rollouts: [{ rollout: "r1", attempt: 0 }] }) },
      { sequence: 2, askedAtMs: 2000, ask: expect.objectContaining({ operation: "forget", remainingMs: 5000 }) },
    ]);
    expect(shown.answer(1).owed).toEqual(["forget@2"]);
  });

  test("of other roles is not owed", () => {
    expect(new Shown("model").show(asked("prepare", "c1", { roles: ["agent"] })).gate).toEqual(initialGate("model"));
  });

  test("answered a second time, or never asked, changes nothing", () => {
    const { gate } = new Shown().show(asked("prepare")).answer(1);
    expect(answered(gate, { asked: 1 })).toBe(gate);
    expect(answered(gate, { asked: 99 })).toBe(gate);
  });

  test("to prepare or capture takes the place of an earlier one of the same id", () => {
    expect(new Shown().show(asked("prepare"), asked("prepare")).owed).toEqual(["prepare@2"]);
    expect(new Shown().show(asked("capture"), asked("capture")).owed).toEqual(["capture@2"]);
    expect(new Shown().show(asked("prepare"), asked("prepare", "c2")).owed).toEqual(["prepare@1", "prepare@2"]);
    expect(new Shown().show(asked("prepare"), asked("capture")).owed).toEqual(["prepare@1", "capture@2"]);
  });

  test("to resume or release does not: each is answered", () => {
    expect(new Shown().show(asked("resume"), asked("resume")).owed).toEqual(["resume@1", "resume@2"]);
    expect(new Shown().show(asked("release"), asked("release")).owed).toEqual(["release@1", "release@2"]);
  });

  const over: [string, ControlEvent][] = [
    ["prepare", prepared],
    ["capture", captured],
    ["capture", failed],
    ["proceed", { type: "checkpoint.proceeded", data: { command: 10, checkpointId: "c1" } }],
    [
      "commit",
      {
        type: "checkpoint.committed",
        data: { command: 10, checkpointId: "c1", cut: {}, anchor: "", scope: [], holdings: [], capturedAtMs: 1 },
      },
    ],
    ["retire", { type: "rollouts.retired", data: { command: 10, rollouts: [] } }],
    ["forget", { type: "rollouts.forgotten", data: { command: 10, rollouts: [] } }],
    ["release", { type: "checkpoint.released", data: { command: 10, checkpointId: "c1" } }],
    ["resume", { type: "resume.ended", data: { command: 10, checkpointId: "c1" } }],
    ["restore", { type: "restore.installed", data: { command: 10, checkpointId: "c1", source: "c0", receipt: [] } }],
    [
      "restore",
      {
        type: "restore.failed",
        data: { command: 10, checkpointId: "c1", source: "c0", problem: { code: "unavailable", message: "" } },
      },
    ],
  ];
  test.each(over)("to %s is over, and owed by nobody any more, after $1.type", (operation, event) => {
    const ask = asked(operation as Ask["operation"]);
    expect(new Shown().show(ask, event).owed).toEqual([]);
  });

  const ofAnother = over.filter(([operation]) => operation !== "resume");
  test.each(ofAnother)("to %s stays owed when $1.type ends another command", (operation, event) => {
    const ask = asked(operation as Ask["operation"], "c1", { command: 9 });
    expect(new Shown().show(ask, event).owed).toEqual([`${operation}@1`]);
  });
});

describe("admission", () => {
  test("is closed by the ask to prepare, and stays so when that is answered, captured and committed", () => {
    const shown = new Shown()
      .show(asked("prepare"))
      .answer(1)
      .show(prepared, asked("capture"))
      .answer(3)
      .show(captured);
    expect(shown.gate.closed).toEqual({ checkpointId: "c1", kind: "checkpoint" });
    shown.show(asked("commit")).answer(5);
    expect(shown.gate.closed).toEqual({ checkpointId: "c1", kind: "checkpoint" });
  });

  test("is closed by the ask to restore", () => {
    expect(new Shown().show(asked("restore", "x1")).gate.closed).toEqual({ checkpointId: "x1", kind: "restore" });
  });

  test.each(["proceed", "resume"] as const)("opens when the ask to %s is obeyed, not before", (operation) => {
    const shown = new Shown().show(asked("prepare")).answer(1).show(asked(operation));
    expect(shown.gate.closed?.checkpointId).toBe("c1");
    expect(shown.answer(2).gate.closed).toBeUndefined();
  });

  test("stays closed when another id is let go on", () => {
    const shown = new Shown().show(asked("prepare", "c2"), asked("resume", "c1")).answer(2);
    expect(shown.gate.closed?.checkpointId).toBe("c2");
  });

  test("opens at the end of a resume, also for who has not answered", () => {
    const ended: ControlEvent = { type: "resume.ended", data: { command: 11, checkpointId: "c1" } };
    const shown = new Shown().show(asked("prepare"), resumed, asked("resume", "c1", { command: 11 }));
    expect(shown.gate.closed?.checkpointId).toBe("c1");
    expect(shown.show(ended).gate).toMatchObject({ closed: undefined, asks: [] });
  });

  test("owes each resume of the same id its answer, whatever another begins or ends, and its own lease too", () => {
    const [first, second] = [{ command: 11 }, { command: 12 }];
    const ended: ControlEvent = { type: "resume.ended", data: { command: 12, checkpointId: "c1" } };
    const shown = new Shown().show(asked("prepare"), resumed, asked("resume", "c1", first), resumed);
    expect(shown.show(asked("resume", "c1", second)).owed).toEqual(["resume@3", "resume@5"]);
    expect(obligationsOf(leaseExpired(shown.gate, "c1"))).toHaveLength(2);
    expect(shown.show(ended).owed).toEqual(["resume@3"]);
  });

  test("opens when everybody was let go on, also for who has not answered", () => {
    const proceeded: ControlEvent = { type: "checkpoint.proceeded", data: { command: 10, checkpointId: "c1" } };
    expect(new Shown().show(asked("prepare"), proceeded).gate.closed).toBeUndefined();
  });
});

describe("[C11] a resumed id", () => {
  test("is stale for ever, and drops what was owed for it, but for its release", () => {
    const shown = new Shown().show(asked("prepare"), asked("release"), resumed);
    expect(isStale(shown.gate, "c1")).toBe(true);
    expect(isStale(shown.gate, "c2")).toBe(false);
    expect(shown.owed).toEqual(["release@2"]);
  });

  test("closes nothing any more, however late the ask to prepare arrives", () => {
    const shown = new Shown().show(resumed, asked("prepare"));
    expect(shown.gate.closed).toBeUndefined();
    expect(shown.owed).toEqual([]);
  });

  test("is still resumed and released", () => {
    expect(new Shown().show(resumed, asked("resume"), asked("release")).owed).toEqual(["resume@2", "release@3"]);
  });

  test("of another leaves what is owed", () => {
    expect(new Shown().show(asked("prepare", "c2"), resumed).owed).toEqual(["prepare@1"]);
  });
});

function fixed(): Shown {
  return new Shown().show(asked("prepare"), asked("capture")).answer(1).answer(2);
}

describe("[L4] a process that has captured", () => {
  test("is fixed until the cut stands, and owes nothing meanwhile but another capture", () => {
    const shown = fixed().show(asked("release", "c0", { command: 20 }));
    expect(shown.gate.fixed).toEqual({ checkpointId: "c1", command: 10 });
    expect(shown.owed).toEqual([]);
    expect(shown.show(captured).owed).toEqual(["release@3"]);
    expect(shown.gate.fixed).toBeUndefined();
  });

  test("is asked again when the cut was refused, and is not fixed until it has answered that", () => {
    const shown = fixed().show(asked("capture"));
    expect(shown.gate.fixed).toBeUndefined();
    expect(shown.owed).toEqual(["capture@3"]);
    expect(shown.answer(3).gate.fixed).toEqual({ checkpointId: "c1", command: 10 });
  });

  test("is not fixed when it answered a problem", () => {
    const shown = new Shown().show(asked("capture")).answer(1, { code: "unavailable" });
    expect(shown.gate.fixed).toBeUndefined();
  });

  test("goes on when the capture fails, or the id is resumed", () => {
    expect(fixed().show(failed).gate.fixed).toBeUndefined();
    expect(fixed().show(resumed).gate.fixed).toBeUndefined();
  });

  test("stays fixed when something else fails, or another id is resumed", () => {
    const other: ControlEvent = { type: "command.failed", data: { ...failed.data, command: 99 } };
    const elsewhere: ControlEvent = { type: "checkpoint.resumed", data: { ...resumed.data, checkpointId: "c0" } };
    expect(fixed().show(other, elsewhere).gate.fixed).toEqual({ checkpointId: "c1", command: 10 });
  });

  test("obeys only a capture of its own id meanwhile", () => {
    expect(fixed().show(asked("capture", "c9")).gate.fixed).toBeUndefined();
  });
});

function marked(attempt: number): ControlEvent {
  return { type: "rollouts.marked", data: { command: 1, rollouts: [{ rollout: "r1", attempt }] } };
}

function refusedOf({ gate }: Shown): boolean[] {
  return [0, 2, 3].map((attempt) => isRefused(gate, { rollout: "r1", attempt }));
}

describe("an attempt", () => {
  test("is refused once it, or a later one, was retired; later ones are not", () => {
    const { gate } = new Shown().show(marked(2), marked(1));
    expect([0, 1, 2, 3].map((attempt) => isRefused(gate, { rollout: "r1", attempt }))).toEqual([
      true,
      true,
      true,
      false,
    ]);
    expect(isRefused(gate, { rollout: "r2", attempt: 0 })).toBe(false);
  });

  test("is refused no more once its rollout is forgotten", () => {
    const forgotten: ControlEvent = { type: "rollouts.forgotten", data: { command: 1, rollouts: ["r1"] } };
    expect(isRefused(new Shown().show(marked(2), forgotten).gate, { rollout: "r1", attempt: 0 })).toBe(false);
  });

  test("is superseded when its replacement is installed, and only then", () => {
    const started: ControlEvent = {
      type: "restore.started",
      data: {
        command: 10,
        checkpointId: "x1",
        source: "c1",
        cut: {},
        assignments: [{ rollout: "r1", from: 0, to: 3 }],
      },
    };
    const installed: ControlEvent = {
      type: "restore.installed",
      data: { command: 10, checkpointId: "x1", source: "c1", receipt: [] },
    };
    const problem = { code: "unavailable" as const, message: "" };
    const notInstalled: ControlEvent = {
      type: "restore.failed",
      data: { command: 10, checkpointId: "x1", source: "c1", problem },
    };
    expect(refusedOf(new Shown().show(started))).toEqual([false, false, false]);
    expect(refusedOf(new Shown().show(started, installed))).toEqual([true, true, false]);
    expect(refusedOf(new Shown().show(started, notInstalled, installed))).toEqual([false, false, false]);
    expect(new Shown().show(started, installed).gate.assigned).toEqual([]);
  });
});

test("events that do not concern the gate leave it as it is", () => {
  const { gate } = new Shown().show(asked("prepare"));
  const shown = evolveGate(gate, {
    event: { type: "command.answered", data: { command: 4 } },
    sequence: 2,
    index: 0,
    subject: "hp.demo.control",
    timeMs: 1,
    incarnation: "c",
  });
  expect(shown).toBe(gate);
});
