import {
  allPassed,
  breakSource,
  formatReport,
  killingSitesOf,
  packageNamed,
  packages,
  type PackageSpec,
  parseTestReport,
  rewardOf,
  taskOf,
  testArguments,
  type TestReport,
} from "@holdpoint/repair";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, describe, expect, test } from "vitest";
import { homeOf, sourceOf } from "./workbench.ts";

const top = mkdtempSync(join(tmpdir(), "holdpoint-repair-"));
afterAll(() => rmSync(top, { recursive: true, force: true }));
let counter = 0;

/** Runs a package's own tests on this source of its file, in a folder of its own. */
function run(spec: PackageSpec, source: string): TestReport {
  counter += 1;
  const folder = join(top, String(counter));
  cpSync(homeOf(spec.name), folder, { recursive: true });
  writeFileSync(join(folder, spec.file), source);
  const env = { NODE_PATH: join(homeOf("tape"), "..") };
  const { stdout, stderr } = spawnSync(process.execPath, testArguments(spec), { cwd: folder, env, encoding: "utf8" });
  return parseTestReport(stdout + stderr);
}

describe.each(packages)("the package $name", (spec) => {
  test("passes all its own tests as it is", () => {
    const report = run(spec, sourceOf(spec.name));
    expect(report).toMatchObject({ planned: spec.expectedTests, passed: spec.expectedTests, failed: 0, crash: null });
    expect(rewardOf(report, spec.expectedTests)).toBe(1);
    expect(formatReport(report, spec.expectedTests)).toBe(`All ${spec.expectedTests} tests passed.\n`);
  });

  test("fails them when it is broken as a task says, and says the same in every folder", () => {
    const task = taskOf({ seed: 1, spec });
    const broken = breakSource(task, sourceOf(spec.name));
    const report = run(spec, broken);
    expect(allPassed(report, spec.expectedTests)).toBe(false);
    expect(rewardOf(report, spec.expectedTests)).toBeLessThanOrEqual(0.5);
    expect(run(spec, broken)).toEqual(report);
  });

  test("is found by its name, and has at least eight sites that its tests notice", () => {
    expect(packageNamed(spec.name)).toBe(spec);
    expect(killingSitesOf(spec).length).toBeGreaterThanOrEqual(8);
  });
});

test("a run that crashes loses nothing of what it printed, however slowly that is read", async () => {
  const folder = join(top, "chatty");
  mkdirSync(folder);
  writeFileSync(join(folder, "test.js"), "for (let i = 0; i < 20000; i++) console.log(i);\nthrow new Error('over');\n");
  const child = spawn(process.execPath, testArguments({ style: "tap", testFiles: ["test.js"] }), {
    cwd: folder,
    stdio: ["ignore", "pipe", "ignore"],
  });

  await Promise.race([once(child, "exit"), pause(500)]); // nobody reads: a run that does not wait for a reader is over by now
  const printed = await text(child.stdout);

  expect(printed.endsWith("19999\n")).toBe(true);
});

test("a source that does not even load is a report with its error and no test passed", () => {
  const [spec] = packages.filter(({ name }) => name === "minimist");
  if (spec === undefined) throw new Error("minimist is gone");
  const report = run(spec, "module.exports = (;");
  expect(report).toMatchObject({ planned: null, passed: 0, crash: "SyntaxError: Unexpected token ';'" });
});

test("there is no package of another name", () => {
  expect(packageNamed("left-pad")).toBeUndefined();
});

test("packages come by name, and their names can be part of an id", () => {
  const names = packages.map(({ name }) => name);
  expect(names).toEqual(names.toSorted((one, other) => (one < other ? -1 : 1)));
  for (const name of names) expect(name).toMatch(/^[A-Za-z0-9_-]+$/);
});
