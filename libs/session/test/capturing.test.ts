/** What a capture has fixed is what was fixed by the process, and for the ask, that answer it. */
import { keyOf } from "@holdpoint/session";
import { describe, expect, test } from "vitest";
import { Told } from "./sessions.ts";

const r0 = { rollout: "r", attempt: 0 };
const other = { rollout: "other", attempt: 0 };

/** Two seeded sessions, and an ask to capture. */
function asked(): Told {
  const told = new Told();
  for (const each of [r0, other]) told.say("session.seeded", each);
  told.ask("capture", "c1");
  return told;
}

function fixedIn({ fold }: Told): readonly string[] | undefined {
  return fold.fixedBy("c1")?.map(keyOf);
}

describe("[L4] a capture", () => {
  test("adds up over the messages of one process that obeys one ask", () => {
    const told = asked();
    told.say("session.captured", r0, { checkpointId: "c1", asked: 3 });
    told.say("session.captured", other, { checkpointId: "c1", asked: 3 });
    told.answerCapture("c1", { asked: 3 });
    expect(fixedIn(told)).toEqual(["r/0", "other/0"]);
  });

  test("begins anew with another ask, also where the process says it before the ask is read", () => {
    const told = asked();
    told.say("session.captured", r0, { checkpointId: "c1", asked: 3 });
    told.say("session.captured", other, { checkpointId: "c1", asked: 5 });
    expect(fixedIn(told)).toEqual(["other/0"]);
  });

  test("begins anew with another life of the process, since it obeys the ask again", () => {
    const told = asked();
    told.say("session.captured", r0, { checkpointId: "c1", asked: 3 });
    told.incarnation = "i2";
    told.say("session.captured", other, { checkpointId: "c1", asked: 3 });
    expect(fixedIn(told)).toEqual(["other/0"]);
  });

  test("that is answered by another life of the process, which fixed nothing, holds nothing", () => {
    const told = asked();
    told.say("session.captured", r0, { checkpointId: "c1", asked: 3 });
    told.incarnation = "i2";
    told.answerCapture("c1", { asked: 3 });
    expect(fixedIn(told)).toEqual([]);
  });

  test("that failed, or an answer to something else, changes nothing of what was fixed", () => {
    const told = asked();
    told.say("session.captured", r0, { checkpointId: "c1", asked: 3 });
    told.answerCapture("c1", { asked: 4, problem: { code: "invalid_phase", message: "no" } });
    told.answerCapture("c1", { asked: 4, operation: "commit" });
    told.answerCapture("c2", { asked: 4 });
    told.sayOfNone("participant.answered", { asked: 4, operation: "capture", checkpointId: null });
    expect(fixedIn(told)).toEqual(["r/0"]);
    expect(told.fold.fixedBy("c2")).toEqual([]);
  });

  test("of a stream that does not say the ask adds up within one life of the process", () => {
    const told = asked();
    told.say("session.captured", r0, { checkpointId: "c1" });
    told.say("session.captured", other, { checkpointId: "c1", asked: 3 });
    told.answerCapture("c1", { asked: 3 });
    expect(fixedIn(told)).toEqual(["r/0", "other/0"]);
    told.incarnation = "i2";
    told.say("session.captured", r0, { checkpointId: "c1" });
    expect(fixedIn(told)).toEqual(["r/0"]);
  });

  test("that was loaded begins anew with the life that goes on", () => {
    const before = asked();
    before.say("session.captured", r0, { checkpointId: "c1", asked: 3 });
    const after = new Told(before.sequence);
    after.fold.load(before.fold.save());
    expect(fixedIn(after)).toEqual(["r/0"]);
    after.say("session.captured", other, { checkpointId: "c1", asked: 3 });
    expect(fixedIn(after)).toEqual(["other/0"]);
  });

  test("after a release is a new one", () => {
    const told = asked();
    told.say("session.captured", r0, { checkpointId: "c1", asked: 3 });
    told.released();
    told.say("session.captured", other, { checkpointId: "c1", asked: 3 });
    expect(fixedIn(told)).toEqual(["other/0"]);
  });
});

test("the live sessions one after the other are all of them", () => {
  const { fold } = asked();
  expect([...fold.live()]).toEqual(fold.all());
});
