/** A fold that is saved and loaded goes on as if it had read the log itself (L14). */
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Told } from "./sessions.ts";

const r0 = { rollout: "r", attempt: 0 };
const other = { rollout: "other", attempt: 0 };

/** Something for every part of a fold: live sessions, a checkpoint, a restore that is not installed. */
function told(): Told {
  const all = new Told();
  for (const each of [r0, other]) all.say("session.seeded", each);
  all.say("activation.started", r0);
  all.capture("c1", r0);
  all.say("call.requested", r0);
  all.ask("restore", "x1");
  all.restore("x1", "c1", r0, 1);
  return all;
}

function viewOf({ fold }: Told): unknown {
  return { all: fold.all(), fixed: fold.fixedBy("c1"), pending: fold.pendingOf("x1"), held: fold.held() };
}

/** A process that starts from what `before` has saved. */
function successorOf(before: Told): Told {
  const after = new Told(before.sequence);
  after.fold.load(before.fold.save());
  return after;
}

describe("[L14] a fold that is loaded", () => {
  test("holds what the saved one held", () => {
    const before = told();
    expect(viewOf(successorOf(before))).toEqual(viewOf(before));
  });

  test("shares nothing with the saved one that changes", () => {
    const before = told();
    const after = successorOf(before);
    const view = viewOf(before);
    after.say("session.closed", other);
    after.say("session.captured", other, { checkpointId: "c1" });
    after.say("sandbox.lent", { rollout: "r", attempt: 1 });
    after.installed("x1", "c1");
    after.released();
    expect(viewOf(before)).toEqual(view);
  });

  test("goes on as the saved one does, whatever happens next", () => {
    const types = ["session.seeded", "call.received", "draft", "session.parked", "session.closed"];
    const happening = fc.record({ type: fc.constantFrom(...types), attempt: fc.nat(1) });
    fc.assert(
      fc.property(fc.array(happening), fc.constantFrom("installed", "failed", "nothing"), (happenings, end) => {
        const before = told();
        const folds = [before, successorOf(before)];
        for (const each of folds) {
          for (const { type, attempt } of happenings) each.say(type, { rollout: "r", attempt });
          if (end === "installed") each.installed("x1", "c1");
          if (end === "failed") each.failed("x1", "c1");
        }
        const [one, two] = folds.map(viewOf);
        expect(two).toEqual(one);
      }),
    );
  });
});
