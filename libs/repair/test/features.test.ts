import { featureNames, initialWeights, policyReply, siteKinds, sites } from "@holdpoint/repair";
import { describe, expect, test } from "vitest";
import { candidatesOf, type Evidence } from "../src/features.ts";
import { broken, conversation, failed, listed, read, task, tested } from "./conversation.ts";

/** The weights' favourite among the candidates: all weight on one feature. */
function favourite(name: (typeof featureNames)[number], weight: number, report = failed) {
  const focused = featureNames.map((known) => (known === name ? weight : 0));
  const messages = conversation(task, [listed], [read, ["run_tests", {}, report]]);
  const chosen = Array.from(
    { length: 40 },
    (_, seed) => policyReply({ weights: focused, messages, seed }).staging?.choice.site,
  );
  return chosen.filter((site) => site !== undefined);
}

const source = "a && b;\n// nothing\nc = !first + 1\n";
const hint = { fromLine: 1, toLine: 4 };

/** What stands behind the kinds in the vectors of the first two candidates. */
function tails(hinted: Evidence["hint"], report?: Evidence["report"]): readonly (readonly number[])[] {
  const candidates = candidatesOf({ source, hint: hinted, report });
  return candidates.slice(0, 2).map(({ features }) => features.slice(siteKinds.length));
}

describe("a candidate", () => {
  test("has the edit of its line, also at the line's end, and one number for each feature", () => {
    const candidates = candidatesOf({ source, hint, report: undefined });
    expect(candidates.map(({ edit }) => edit)).toEqual([
      { line: 1, old: "a && b;", new: "a || b;" },
      { line: 3, old: "c = !first + 1", new: "c = !!first + 1" },
      { line: 3, old: "c = !first + 1", new: "c = !first - 1" },
      { line: 3, old: "c = !first + 1", new: "c = !first + 0" },
    ]);
    for (const { site, features } of candidates) {
      expect(features).toHaveLength(featureNames.length);
      expect(features.slice(0, siteKinds.length)).toEqual(siteKinds.map((kind) => (kind === site.kind ? 1 : 0)));
    }
  });

  test("is in the hinted lines or not, and the nearer to their middle the nearer to 1", () => {
    expect(tails({ fromLine: 1, toLine: 4 })).toEqual([
      [1, 1 - 1.5 / 2.5, 0, 0],
      [1, 1 - 0.5 / 2.5, 0, 0],
    ]);
    expect(tails({ fromLine: 3, toLine: 3 })).toEqual([
      [0, 0, 0, 0],
      [1, 1, 0, 0],
    ]);
    expect(tails({ fromLine: 1, toLine: 1 })).toEqual([
      [1, 1, 0, 0],
      [0, 0, 0, 0],
    ]);
  });

  test("is on a line that a stack trace names, or that shares a word with a failed test, or not", () => {
    const report = { passed: false, sourceLines: new Set([1, 2]), words: new Set(["first"]) };
    expect(tails(hint, report).map((tail) => tail.slice(2))).toEqual([
      [1, 0],
      [0, 1],
    ]);
  });
});

describe("what the softmax policy sees", () => {
  test("is named, by kinds in their order and then what it knows of a line; weights start at zero", () => {
    expect(featureNames.slice(0, siteKinds.length)).toEqual(siteKinds.map((kind) => `kind: ${kind}`));
    expect(featureNames.slice(siteKinds.length)).toEqual([
      "inside the hinted lines",
      "nearness to their middle",
      "line named by a stack trace",
      "line shares a word with a failed test",
    ]);
    expect(initialWeights()).toEqual(featureNames.map(() => 0));
  });

  test.each(["|| to &&", "1 to 0"] as const)("includes the kind of a flip: %s", (kind) => {
    expect(favourite(`kind: ${kind}`, 50).every((site) => site.kind === kind)).toBe(true);
    expect(favourite(`kind: ${kind}`, -50).every((site) => site.kind !== kind)).toBe(true);
  });

  test("includes whether it is in the hinted lines, both ends included", () => {
    const { fromLine, toLine } = task.hint;
    const inside = favourite("inside the hinted lines", 50);
    expect(inside.every(({ line }) => line >= fromLine && line <= toLine)).toBe(true);
    const edges = sites(broken).map(({ line }) => line);
    for (const [first, last] of [
      [edges[0], edges[0]],
      [edges.at(-1), edges.at(-1)],
    ] as const) {
      if (first === undefined || last === undefined) throw new Error("no sites");
      const focused = featureNames.map((known) => (known === "inside the hinted lines" ? 50 : 0));
      const narrow = { ...task, hint: { fromLine: first, toLine: last } };
      const messages = conversation(narrow, [listed], [read, tested]);
      expect(policyReply({ weights: focused, messages, seed: 1 }).staging?.choice.site.line).toBe(first);
    }
  });

  test("includes how near to their middle it is", () => {
    const middle = (task.hint.fromLine + task.hint.toLine) / 2;
    const near = favourite("nearness to their middle", 500);
    const best = Math.min(...sites(broken).map(({ line }) => Math.abs(line - middle)));
    expect(near.every(({ line }) => Math.abs(line - middle) === best)).toBe(true);
  });

  test("includes whether a stack trace names its line", () => {
    const first = sites(broken)[0]?.line;
    const report = `${failed}Stack traces name index.js at ${first}, ${task.site.line}.\n`;
    const traced = favourite("line named by a stack trace", 50, report);
    expect(traced.every(({ line }) => line === first || line === task.site.line)).toBe(true);
  });

  test("includes whether its line has a word of a failed test's name", () => {
    const report = `${failed}not ok: the replacer: is it there\n`;
    const lines = broken.split("\n");
    const shared = favourite("line shares a word with a failed test", 50, report);
    expect(shared.every(({ line }) => /replacer/i.test(lines[line - 1] ?? ""))).toBe(true);
    const without = favourite("line shares a word with a failed test", -50, report);
    expect(without.every(({ line }) => !/replacer/i.test(lines[line - 1] ?? ""))).toBe(true);
  });
});
