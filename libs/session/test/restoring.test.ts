/** [F9] Sessions are rebuilt by replay: whatever happened, a restored session is what its checkpoint fixed. */
import type { Episode } from "@holdpoint/schemas";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Told, wordsKind } from "./sessions.ts";

/** Something that happens to the rollout of this number. */
interface Happening {
  readonly rollout: number;
  readonly type: string;
  readonly word: string;
}

const rollouts = 3;
const types = [
  "session.seeded",
  "activation.started",
  "call.requested",
  "call.received",
  "tool.returned",
  "activation.ended",
  "session.parked",
  "session.unparked",
  "session.restart_marked",
  "session.closed",
  "draft",
];

const happenings = fc.array(
  fc.record({
    rollout: fc.nat(rollouts - 1),
    type: fc.constantFrom(...types),
    word: fc.stringMatching(/^[a-z]{1,4}$/),
  }),
  { maxLength: 40 },
);

function episode(rollout: number, attempt = 0): Episode {
  return { rollout: `r${rollout}`, attempt };
}

const everyone = Array.from({ length: rollouts }, (_, rollout) => episode(rollout));

function tell(told: Told, history: readonly Happening[], attempt = 0): void {
  for (const { rollout, type, word } of history) told.say(type, episode(rollout, attempt), { word });
}

/** A process that has lived through `history` and then captured all that it has. */
function capturedAfter(history: readonly Happening[]): Told {
  const told = new Told();
  for (const each of everyone) told.say("session.seeded", each);
  tell(told, history);
  told.capture("c1", ...everyone);
  return told;
}

/** Installs everything that c1 holds as attempt 1, in the process of `told`. */
function restoreAll(told: Told): void {
  told.ask("restore", "x1");
  for (const each of everyone) told.restore("x1", "c1", each, 1);
  told.installed("x1", "c1");
}

describe("[F9] whatever happened", () => {
  test("a checkpoint fixes each live session as it stood at the cut", () => {
    fc.assert(
      fc.property(happenings, happenings, (history, later) => {
        const told = capturedAfter(history);
        const live = everyone.flatMap((each) => told.fold.get(each) ?? []);
        const standing = live.map((session) => ({ ...session, state: wordsKind.fix(session.state) }));
        tell(told, later);
        expect(told.fold.fixedBy("c1")).toEqual(standing);
      }),
    );
  });

  test("a replay up to the cut, in a process that has seen nothing, gives what was fixed", () => {
    fc.assert(
      fc.property(happenings, happenings, (history, later) => {
        const original = capturedAfter(history);
        tell(original, later);
        expect(capturedAfter(history).fold.fixedBy("c1")).toEqual(original.fold.fixedBy("c1"));
      }),
    );
  });

  test("a restored session has the state at the cut under its new attempt, whatever its origin did after that", () => {
    fc.assert(
      fc.property(happenings, happenings, (history, later) => {
        const told = capturedAfter(history);
        tell(told, later);
        restoreAll(told);
        for (const fixed of told.fold.fixedBy("c1") ?? []) {
          const restored = told.fold.get({ rollout: fixed.rollout, attempt: 1 });
          expect(restored).toMatchObject({ state: fixed.state, claimed: false, from: { attempt: 0, source: "c1" } });
          expect(restored?.status.work).not.toBe("parked");
          expect(restored?.status.restart).toBe(fixed.status.restart);
        }
      }),
    );
  });

  test("a restored session to which the same happens comes to the same as one that was let go on", () => {
    const working = fc.array(
      fc.record({ rollout: fc.nat(rollouts - 1), type: fc.constantFrom(...types.slice(1, 6)), word: fc.constant("x") }),
    );
    fc.assert(
      fc.property(happenings, working, (history, later) => {
        const parkAll = everyone.map((_, rollout) => ({ rollout, type: "session.parked", word: "" }));
        const letGo = everyone.map((_, rollout) => ({ rollout, type: "session.unparked", word: "" }));
        const original = capturedAfter([...history, ...parkAll]);
        tell(original, [...letGo, ...later]);
        const restored = capturedAfter([...history, ...parkAll]);
        restoreAll(restored);
        tell(restored, [...letGo, ...later], 1);
        for (const { rollout, status, state } of original.fold.all()) {
          expect(restored.fold.get({ rollout, attempt: 1 })).toMatchObject({ status, state });
        }
      }),
    );
  });
});
