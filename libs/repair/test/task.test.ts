import {
  breakSource,
  digestOf,
  flip,
  flipOf,
  killingSitesOf,
  packageNamed,
  packages,
  type PackageSpec,
  siteKinds,
  sites,
  Task,
  taskOf,
} from "@holdpoint/repair";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { sourceOf } from "./workbench.ts";

function specOf(name: string): PackageSpec {
  const spec = packageNamed(name);
  if (spec === undefined) throw new Error(`no package ${name}`);
  return spec;
}

const seeds = fc.integer({ min: 0, max: 2 ** 32 - 1 });

describe("the table of killing sites", () => {
  test.each(packages)("names sites of $name as it is installed, each once, by kind and position", (spec) => {
    const known = sites(sourceOf(spec.name));
    const killing = killingSitesOf(spec);
    for (const site of killing) expect(known).toContainEqual(site);
    const order = (one: (typeof killing)[number]) => siteKinds.indexOf(one.kind) * 1e6 + one.position;
    const sorted = killing.toSorted((one, other) => order(one) - order(other));
    expect(killing).toEqual(sorted);
    expect(new Set(killing.map(({ position }) => position)).size).toBe(killing.length);
  });

  test("is empty for a package that is not ours", () => {
    expect(killingSitesOf({ name: "left-pad" })).toEqual([]);
  });
});

describe("a task", () => {
  test("is fixed by seed and package", () => {
    expect(taskOf({ seed: 7, spec: specOf("minimist") })).toMatchInlineSnapshot(`
      {
        "file": "index.js",
        "hint": {
          "fromLine": 157,
          "toLine": 186,
        },
        "package": "minimist",
        "site": {
          "kind": "! to !!",
          "line": 169,
          "position": 4000,
        },
        "taskId": "minimist-4000-4-157",
        "version": "1.2.8",
      }
    `);
  });

  test("breaks the file at a site that its tests notice, which a hint of at most 30 lines holds", () => {
    fc.assert(
      fc.property(seeds, fc.constantFrom(...packages), (seed, spec) => {
        const task = taskOf({ seed, spec });
        expect(Task.parse(task)).toEqual(task);
        expect(killingSitesOf(spec)).toContainEqual(task.site);
        expect(task).toMatchObject({ package: spec.name, version: spec.version, file: spec.file });
        const { fromLine, toLine } = task.hint;
        const lines = sourceOf(spec.name).split("\n").length;
        expect(fromLine).toBeGreaterThanOrEqual(1);
        expect(toLine).toBeLessThanOrEqual(lines);
        expect(toLine - fromLine + 1).toBe(Math.min(30, lines));
        expect(task.site.line).toBeGreaterThanOrEqual(fromLine);
        expect(task.site.line).toBeLessThanOrEqual(toLine);
        expect(taskOf({ seed, spec })).toEqual(task);
      }),
    );
  });

  test("has an id of its own for each site and hint, which can be part of a subject", () => {
    const spec = specOf("minimist");
    const byId = new Map<string, string>();
    for (let seed = 0; seed < 2000; seed += 1) {
      const task = taskOf({ seed, spec });
      expect(task.taskId).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
      const content = JSON.stringify(task);
      expect(byId.get(task.taskId) ?? content).toBe(content);
      byId.set(task.taskId, content);
    }
    expect(byId.size).toBeGreaterThan(500);
  });

  test("is drawn with a skew: of some kinds far more often than of others, but of every kind there is", () => {
    const spec = specOf("minimist");
    const kinds = Array.from({ length: 4000 }, (_, seed) => taskOf({ seed, spec }).site.kind);
    const share = (kind: string) => kinds.filter((one) => one === kind).length / kinds.length;
    // 8, 5, 4, 3, 2 and 2 of 24 + 6 tickets: six kinds with a skew, six kinds without.
    expect(share("=== to !==")).toBeCloseTo(8 / 30, 1);
    expect(share("|| to &&")).toBeCloseTo(5 / 30, 1);
    expect(share("&& to ||")).toBeCloseTo(4 / 30, 1);
    expect(share("+ to -")).toBeCloseTo(3 / 30, 1);
    expect(share("1 to 0")).toBeCloseTo(2 / 30, 1);
    expect(share("++ to --")).toBeLessThan(0.06);
    expect(new Set(kinds)).toEqual(new Set(killingSitesOf(spec).map(({ kind }) => kind)));
  });

  test("has its flip nearer to the middle of the hint than to its ends, as a rule", () => {
    const spec = specOf("minimist");
    const places = Array.from({ length: 3000 }, (_, seed) => taskOf({ seed, spec }))
      .filter(({ hint }) => hint.fromLine > 1 && hint.toLine < 250)
      .map(({ site, hint }) => site.line - hint.fromLine);
    const inside = places.filter((place) => place >= 10 && place < 20).length / places.length;
    expect(inside).toBeGreaterThan(0.45); // a third, if it were anywhere
    const short = specOf("fast-json-stable-stringify");
    const ends = Array.from({ length: 300 }, (_, seed) => taskOf({ seed, spec: short }).hint.toLine);
    expect(Math.max(...ends)).toBe(sourceOf(short.name).split("\n").length);
    expect(Math.min(...places)).toBeLessThan(4);
    expect(Math.max(...places)).toBeGreaterThan(25);
  });

  test("is not there for a package or a version without a table, and the message says what there is", () => {
    const spec = specOf("minimist");
    for (const other of [
      { ...spec, name: "left-pad" },
      { ...spec, version: "1.2.7" },
    ]) {
      const expected = { code: "not_found", message: expect.stringContaining("minimist 1.2.8, text-table 0.2.0") };
      expect(() => taskOf({ seed: 1, spec: other })).toThrow(expect.objectContaining(expected));
    }
  });
});

describe("breaking a source", () => {
  test("flips the site of the task", () => {
    const spec = specOf("text-table");
    const task = taskOf({ seed: 3, spec });
    const source = sourceOf(spec.name);
    expect(breakSource(task, source)).toBe(flip(source, task.site));
  });

  test("is refused for any source but that of the version, with both digests", () => {
    const task = taskOf({ seed: 3, spec: specOf("text-table") });
    const other = `${sourceOf("text-table")}\n`;
    const details = { expected: digestOf(sourceOf("text-table")), found: digestOf(other) };
    const message = expect.stringContaining("text-table 0.2.0");
    expect(() => breakSource(task, other)).toThrow(
      expect.objectContaining({ code: "invalid_request", message, details }),
    );
    const older = { ...task, version: "0.1.0" };
    expect(() => breakSource(older, other)).toThrow(expect.objectContaining({ code: "not_found" }));
  });

  test("is refused at a place where there is no such operator", () => {
    const task = taskOf({ seed: 3, spec: specOf("text-table") });
    const wrong = { ...task, site: { ...task.site, position: task.site.position + 1 } };
    expect(() => breakSource(wrong, sourceOf("text-table"))).toThrow(
      expect.objectContaining({
        code: "invalid_request",
        message: expect.stringContaining(flipOf(task.site.kind).found),
      }),
    );
  });

  test("knows a text by the SHA-256 of its UTF-8 bytes", () => {
    expect(digestOf("")).toBe("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    expect(digestOf("ß")).toBe("cd3a7e92a9114307055e4a0583acd6549ec3bb6d7c10ecc6ce11ae3d76b3d7db");
  });
});
