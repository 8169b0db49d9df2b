/** What a controller may command: what is accepted, what is refused, and in which words. */
import { Command, maxTimeoutMs, type Operation, operations, parseCommand } from "@holdpoint/schemas";
import { describe, expect, test } from "vitest";
import * as z from "zod";

/** A body of each operation with all that it may hold, but for its deadline. */
const full: Readonly<Record<Operation, object>> = {
  discover: {},
  status: {},
  prepare: { checkpointId: "c1" },
  renew: { checkpointId: "c1" },
  capture: { checkpointId: "c1", scope: [{ rollout: "r1", attempt: 0 }] },
  proceed: { checkpointId: "c1" },
  commit: { checkpointId: "c1", scope: [], stop: true },
  checkpoint: { checkpointId: "c1", scope: [{ rollout: "r1", attempt: 3 }] },
  resume: { checkpointId: "c1" },
  restore: { checkpointId: "c2", source: "c1", scope: ["r1"], allowIncomplete: true },
  retire: { rollouts: [{ rollout: "r1", attempt: 0 }] },
  forget: { rollouts: ["r1"] },
  remove: { role: "agent", instance: "a1", worker: "0" },
  release: { checkpointId: "c1", kept: ["c1", "c0"] },
};

/** What may be left out, besides the deadline. */
const optional: ReadonlySet<string> = new Set(["scope", "stop", "allowIncomplete", "worker"]);

const questions: readonly Operation[] = ["discover", "status"];
const orders = operations.filter((operation) => !questions.includes(operation));

/** Why the body is refused; undefined where it is accepted. */
function refusal(operation: Operation, body: unknown): string | undefined {
  const parsed = parseCommand(operation, body);
  return parsed.success ? undefined : z.prettifyError(parsed.error);
}

function withDeadline(operation: Operation): object {
  return { ...full[operation], timeoutMs: 30_000 };
}

test("the operations are those of the protocol, in its order", () => {
  expect(operations).toEqual([
    "discover",
    "status",
    "prepare",
    "renew",
    "capture",
    "proceed",
    "commit",
    "checkpoint",
    "resume",
    "restore",
    "retire",
    "forget",
    "remove",
    "release",
  ]);
});

describe.each(operations)("%s", (operation) => {
  test("is accepted with all that it may hold, as it was written", () => {
    const parsed = parseCommand(operation, withDeadline(operation));
    expect(parsed.data).toEqual({ operation, ...withDeadline(operation) });
  });

  test("is refused with a field that it does not know, which is named", () => {
    expect(refusal(operation, { ...withDeadline(operation), checkpoint_id: "c1" })).toContain('"checkpoint_id"');
    const sly: unknown = JSON.parse(
      JSON.stringify(withDeadline(operation)).replace("{", '{ "__proto__": { "stop": true }, '),
    );
    expect(refusal(operation, sly)).toContain('"__proto__"');
  });

  test("is refused with the operation in its body, whatever it says", () => {
    for (const said of [operation, "resume", undefined]) {
      const why = refusal(operation, { ...withDeadline(operation), operation: said });
      expect(why).toContain("the subject says the operation; leave it out of the body");
    }
  });

  test("needs every field that has no default", () => {
    for (const name of Object.keys(full[operation])) {
      const body = Object.fromEntries(Object.entries(withDeadline(operation)).filter(([other]) => other !== name));
      expect(refusal(operation, body) === undefined).toBe(optional.has(name));
    }
  });

  test("is refused where its body is no object", () => {
    for (const body of [null, undefined, [], "text", 7, true]) expect(refusal(operation, body)).toContain("object");
  });

  test("takes at most one deadline", () => {
    const both = { ...withDeadline(operation), deadlineAt: "2027-01-01T00:00:00Z" };
    expect(refusal(operation, both)).toContain("one of deadlineAt");
  });
});

test.each(orders)("%s is refused without a deadline, in words that say what to give", (operation) => {
  expect(refusal(operation, full[operation])).toContain(
    "expected exactly one of deadlineAt (an instant) and timeoutMs (milliseconds from the command's arrival)",
  );
});

test.each(questions)("%s needs no deadline", (operation) => {
  expect(refusal(operation, {})).toBeUndefined();
});

/** Why a prepare with this deadline is refused. */
function prepare(deadline: object): string | undefined {
  return refusal("prepare", { checkpointId: "c1", ...deadline });
}

/** Why a command that names this episode is refused. */
function named(operation: "capture" | "commit" | "checkpoint" | "retire", episode: unknown): string | undefined {
  const list = operation === "retire" ? { rollouts: [episode] } : { checkpointId: "c1", scope: [episode] };
  return refusal(operation, { ...list, timeoutMs: 1 });
}

describe("a deadline", () => {
  test("in milliseconds is a whole number from 1 to a day", () => {
    for (const timeoutMs of [1, 30_000, maxTimeoutMs]) expect(prepare({ timeoutMs })).toBeUndefined();
    for (const timeoutMs of [0, -1, 0.5, maxTimeoutMs + 1, Number.NaN, "30000", null]) {
      expect(prepare({ timeoutMs })).toContain("timeoutMs");
    }
    expect(maxTimeoutMs).toBe(86_400_000);
  });

  test("as an instant is in UTC, with or without fractions of a second", () => {
    for (const deadlineAt of ["2027-01-01T00:00:00Z", "2027-01-01T00:00:00.123Z", "2028-02-29T23:59:59Z"]) {
      expect(prepare({ deadlineAt })).toBeUndefined();
    }
    for (const deadlineAt of ["2027-01-01", "2027-01-01T00:00:00+01:00", "2027-02-29T00:00:00Z", "soon", 0]) {
      expect(prepare({ deadlineAt })).toContain("deadlineAt");
    }
  });

  test("that is given as undefined is not given", () => {
    expect(prepare({ timeoutMs: 1, deadlineAt: undefined })).toBeUndefined();
    expect(prepare({ timeoutMs: undefined })).toContain("expected exactly one");
  });
});

describe("an episode that a command names", () => {
  test.each(["capture", "commit", "checkpoint", "retire"] as const)(
    "is whole, and has no field besides, in %s",
    (operation) => {
      expect(named(operation, { rollout: "r-a1", attempt: 0 })).toBeUndefined();
      expect(named(operation, { rollout: "r", attempt: 0, attemptt: 1 })).toContain('"attemptt"');
      for (const wrong of [
        { rollout: "r" },
        { attempt: 0 },
        { rollout: "r.s", attempt: 0 },
        { rollout: "r", attempt: -1 },
        "r",
      ]) {
        expect(named(operation, wrong)).toBeDefined();
      }
    },
  );
});

test("a retirement and a forgetting name at least one rollout; a release may keep none", () => {
  expect(refusal("retire", { rollouts: [], timeoutMs: 1 })).toBeDefined();
  expect(refusal("forget", { rollouts: [], timeoutMs: 1 })).toBeDefined();
  expect(refusal("release", { checkpointId: "c1", kept: [], timeoutMs: 1 })).toBeUndefined();
});

test("a command that names no operation of the protocol is none", () => {
  expect(Command.safeParse({ operation: "pause", checkpointId: "c1", timeoutMs: 1 }).success).toBe(false);
});
