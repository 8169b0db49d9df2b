import { expect, test } from "vitest";
import { auditExecutions, readExecutions } from "../src/demo/executions.ts";

interface LineOptions {
  readonly execution: string;
  readonly turn?: number;
  readonly phase: "begin" | "end";
}

function line({ execution, turn = 0, phase }: LineOptions): string {
  return JSON.stringify({ execution, rollout: "g0-r0", attempt: 0, turn, index: 0, name: "run_tests", phase });
}

function ran(execution: string, turn = 0): string {
  return `${line({ execution, turn, phase: "begin" })}\n${line({ execution, turn, phase: "end" })}\n`;
}

function audit(text: string, ...executions: readonly string[]) {
  const committed = executions.map((execution, turn) => ({ rollout: "g0-r0", turn, index: 0, execution }));
  return auditExecutions(committed, readExecutions(text).executions);
}

test("calls that were each executed once are no fault", () => {
  expect(audit(ran("x0", 0) + ran("x1", 1), "x0", "x1")).toEqual({ once: 2, repeated: new Map(), faults: [] });
});

test("an execution that a process began before it died is counted as repeated, and is no fault", () => {
  const text = `${line({ execution: "torn", phase: "begin" })}\n${ran("x0")}`;

  expect(audit(text, "x0")).toEqual({ once: 1, repeated: new Map([["g0-r0", 1]]), faults: [] });
});

test("a call that is executed again after it has counted is a fault", () => {
  expect(audit(ran("x0") + ran("x9"), "x0").faults).toEqual([
    "g0-r0, turn 0, call 0: executed again as x9 after it had counted",
  ]);
});

test("a call that counts and was never executed is a fault", () => {
  expect(audit("", "x0").faults).toEqual(["g0-r0, turn 0, call 0: nothing was executed as x0"]);
});

test("one execution that began twice is a fault", () => {
  expect(audit(ran("x0") + ran("x0"), "x0").faults).toEqual([
    "g0-r0, turn 0, call 0: x0 began 2 times and ended 2 times",
  ]);
});

test("an execution that counts for two calls is a fault", () => {
  expect(audit(ran("x0", 0), "x0", "x0").faults).toEqual(["g0-r0, turn 1, call 0: x0 was executed for another call"]);
});

test("a verify counts like a call", () => {
  const verify = { rollout: "g0-r0", attempt: 0, turn: null, index: null, name: "verify" };
  const lines = (execution: string) =>
    ["begin", "end"].map((phase) => `${JSON.stringify({ ...verify, execution, phase })}\n`).join("");
  const committed = [{ rollout: "g0-r0", turn: null, index: null, execution: "v1" }];

  expect(auditExecutions(committed, readExecutions(lines("v1")).executions).faults).toEqual([]);
  expect(auditExecutions(committed, readExecutions(lines("v1") + lines("v2")).executions).faults).toEqual([
    "g0-r0, verify: executed again as v2 after it had counted",
  ]);
});

test("a line that cannot be read is a problem with its place", () => {
  expect(readExecutions(`${ran("x0")}{"torn`).problems).toEqual(["line 3 of the execution log cannot be read"]);
});
