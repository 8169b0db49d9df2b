/** The live sessions of one rollout, found without a walk through all. */
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { holding, Told } from "./sessions.ts";

const rollouts = ["a", "b"] as const;

/** Sessions by way of each path on which one begins, goes on or ends. */
const happening = fc.record({
  type: fc.constantFrom("session.seeded", "draft", "session.closed", "session.retired", "begun", "installed", "failed"),
  rollout: fc.constantFrom(...rollouts),
  attempt: fc.nat(2),
});

/** A session of the same name is live and pending: what is said is of the pending one. */
const shadowed = (["session.seeded", "begun", "session.closed"] as const).map((type) => {
  return { type, rollout: "a" as const, attempt: 2 };
});

test("the sessions of a rollout are those of all that are its, whatever happened, also in a fold that was loaded", () => {
  fc.assert(
    fc.property(fc.array(happening, { maxLength: 30 }), (happenings) => {
      const told = holding({ rollout: "a", attempt: 0 }, { rollout: "b", attempt: 0 });
      told.capture("c1", { rollout: "a", attempt: 0 });
      for (const { type, ...episode } of happenings) {
        if (type === "begun") {
          told.ask("restore", "x1");
          told.restore("x1", "c1", { rollout: "a", attempt: 0 }, 2);
        } else if (type === "installed") told.installed("x1", "c1");
        else if (type === "failed") told.failed("x1", "c1");
        else told.say(type, episode);
      }
      const loaded = new Told(told.sequence);
      loaded.fold.load(told.fold.save());
      for (const { fold } of [told, loaded]) {
        for (const rollout of rollouts) {
          const walked = fold.all().filter((session) => session.rollout === rollout);
          const found = fold.of(rollout);
          expect(new Set(found)).toEqual(new Set(walked));
          expect(found.length).toBe(walked.length);
        }
      }
    }),
    { examples: [[shadowed]] },
  );
});

test("a rollout of which nothing is here has none", () => {
  const told = holding({ rollout: "a", attempt: 0 });
  told.say("session.closed", { rollout: "a", attempt: 0 });
  expect([told.fold.of("a"), told.fold.of("never")]).toEqual([[], []]);
});
