/** The session machine, and the table that is computed from it. */
import {
  initialStatus,
  isAtBoundary,
  moved,
  sessionMachine,
  sessionTable,
  type SessionStatus,
} from "@holdpoint/session";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createActor, transition } from "xstate";

const works = ["idle", "running", "at_boundary", "parked", "closed"] as const;
const statuses: readonly SessionStatus[] = works.flatMap((work) => [
  { work, restart: false },
  { work, restart: true },
]);

function nameOf({ work, restart }: SessionStatus): string {
  return restart ? `${work}+restart` : work;
}

/** Where XState itself goes from `status`. */
function stepped({ work, restart }: SessionStatus, type: string): unknown {
  const snapshot = sessionMachine.resolveState({
    value: { work, capture: restart ? "restart" : "possible" },
    context: {},
  });
  return transition(sessionMachine, snapshot, { type })[0].value;
}

/** The status after these events, from the start. */
function after(...types: readonly string[]): SessionStatus {
  return types.reduce(moved, initialStatus);
}

describe("the table", () => {
  test("has a row for every state of the machine", () => {
    expect([...sessionTable().keys()].toSorted()).toEqual(statuses.map(nameOf).toSorted());
    expect(Object.keys(sessionMachine.states["work"]?.states ?? {}).toSorted()).toEqual([...works].toSorted());
  });

  test.each(statuses)(
    "leads from $work (restart: $restart) where the machine goes, for every event and for others",
    (status) => {
      for (const type of [...sessionMachine.events, "session.seeded", "tool.started", "nothing of ours", ""]) {
        const { work, restart } = moved(status, type);
        expect({ work, capture: restart ? "restart" : "possible" }).toEqual(stepped(status, type));
        expect(sessionTable().get(nameOf(status))?.get(type) ?? nameOf(status)).toBe(nameOf({ work, restart }));
      }
    },
  );

  test("goes with a live actor through any events", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...sessionMachine.events), { maxLength: 30 }), (types) => {
        const actor = createActor(sessionMachine).start();
        let status = initialStatus;
        for (const type of types) {
          actor.send({ type });
          status = moved(status, type);
          const { work, restart } = status;
          expect(actor.getSnapshot().value).toEqual({ work, capture: restart ? "restart" : "possible" });
        }
      }),
    );
  });
});

describe("a session", () => {
  test("begins idle, and can be captured", () => {
    expect(initialStatus).toEqual({ work: "idle", restart: false });
  });

  test("works from its activation to its end, and is at a boundary while it awaits the model", () => {
    expect(after("activation.started").work).toBe("running");
    expect(after("activation.started", "call.requested").work).toBe("at_boundary");
    expect(after("activation.started", "call.requested", "call.received").work).toBe("running");
    expect(after("activation.started", "call.requested", "call.received", "tool.returned").work).toBe("running");
    expect(after("activation.started", "call.requested", "call.received", "activation.ended").work).toBe("idle");
  });

  test("that is let go on stands at its boundary, wherever it was parked", () => {
    for (const before of [[], ["activation.started"], ["activation.started", "call.requested"]]) {
      expect(after(...before, "session.parked").work).toBe("parked");
      expect(after(...before, "session.parked", "session.unparked").work).toBe("at_boundary");
    }
  });

  test("that was parked before its activation runs once that starts", () => {
    expect(after("session.parked", "session.unparked", "activation.started").work).toBe("running");
  });

  test("that is parked stays parked, whatever else is said of it", () => {
    const others = sessionMachine.events.filter(
      (type) => !["session.unparked", "session.closed", "session.retired", "session.restart_marked"].includes(type),
    );
    for (const type of others) expect(after("session.parked", type).work).toBe("parked");
  });

  test("that was closed or retired is closed for good", () => {
    for (const end of ["session.closed", "session.retired"]) {
      for (const type of sessionMachine.events) expect(after("activation.started", end, type).work).toBe("closed");
    }
  });

  test("that is marked a restart works on as before, and stays a restart", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...sessionMachine.events)), fc.nat(20), (types, at) => {
        const marked = types.toSpliced(at, 0, "session.restart_marked");
        expect(after(...marked)).toEqual({ work: after(...types).work, restart: true });
      }),
    );
  });

  test("counts as at a boundary unless it runs; a restart always does, since nobody waits for it", () => {
    const running = statuses.filter((status) => !isAtBoundary(status));
    expect(running).toEqual([{ work: "running", restart: false }]);
  });
});
