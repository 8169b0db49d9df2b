import { type Task, breakSource, packageNamed, taskOf } from "@holdpoint/repair";
import { dirProvider, type SandboxProvider } from "@holdpoint/sandbox";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { type InstalledPackage, installedPackage, shippedSource } from "../src/installed-package.ts";
import { TestRunner } from "../src/test-runner.ts";
import { cut, maxAnswerBytes, mayChange, Tools } from "../src/tools.ts";
import { scratchFolder } from "./scratch.ts";

const sandbox = "box";
let root: string;
let provider: SandboxProvider;
let tools: Tools;
let target: InstalledPackage;
let task: Task;
let source: string;

beforeEach(async () => {
  root = scratchFolder();
  provider = await dirProvider({ root });
  tools = new Tools(provider, new TestRunner(provider));
  const spec = packageNamed("expand-template");
  if (spec === undefined) throw new Error("no such package");
  task = taskOf({ seed: 1, spec });
  target = installedPackage(task.package);
  source = await shippedSource(target, task);
  await provider.create(sandbox, target.home);
});

function run(name: string, input: unknown): Promise<string> {
  const text = typeof input === "string" ? input : JSON.stringify(input);
  return tools.run({ sandbox, target }, { name, arguments: text }, new AbortController().signal);
}

test("the files of the package are listed one a line, and read as they are", async () => {
  expect((await run("list_files", {})).split("\n")).toEqual([
    ".travis.yml",
    "LICENSE",
    "README.md",
    "index.js",
    "package.json",
    "test.js",
    "",
  ]);
  expect(await run("read_file", { path: "index.js" })).toBe(source);
});

test("a line is edited only where it reads as the model says, and the tests tell a broken package from a mended one", async () => {
  await provider.writeFile(sandbox, task.file, breakSource(task, source));
  expect(await run("run_tests", {})).toMatch(/^\d+ of 14 tests passed, \d+ failed\./);

  const line = task.site.line;
  const broken = breakSource(task, source).split("\n")[line - 1];
  const mended = source.split("\n")[line - 1];
  expect(await run("edit_file", { path: task.file, line, old: "x", new: mended })).toMatch(/^error: line \d+ reads/);
  expect(await run("edit_file", { path: task.file, line, old: broken, new: mended })).toBe(`edited line ${line}\n`);
  expect(await run("read_file", { path: task.file })).toBe(source);
  expect(await run("run_tests", {})).toBe("All 14 tests passed.\n");
});

test.each([
  ["read_file", "{", "wrong arguments"],
  ["read_file", {}, "wrong arguments"],
  ["read_file", { path: 7 }, "wrong arguments"],
  ["list_files", { all: true }, "wrong arguments"],
  ["edit_file", { path: "index.js", line: 0, old: "", new: "" }, "wrong arguments"],
  ["read_file", { path: "missing.js" }, 'there is no "missing.js"'],
  ["read_file", { path: "../../owner.json" }, "inside the sandbox"],
  ["read_file", { path: "/etc/passwd" }, "inside the sandbox"],
  ["read_file", { path: "." }, "is no file"],
  ["launch_missiles", {}, "there is no tool launch_missiles; there are list_files"],
])("a call of %s with %j is answered with an error that the model can read", async (name, input, words) => {
  const answer = await run(name, input);
  expect(answer).toMatch(/^error: /);
  expect(answer).toContain(words);
});

test("a sandbox that is gone is no answer for the model", async () => {
  await provider.delete(sandbox);
  await expect(run("read_file", { path: "index.js" })).rejects.toMatchObject({ code: "not_found" });
  await expect(run("list_files", {})).rejects.toMatchObject({ code: "not_found" });
  await expect(run("run_tests", {})).rejects.toMatchObject({ code: "not_found" });
});

test("a package that never ends is ended by its CPU time, and reported", async () => {
  writeFileSync(join(root, "sandboxes", sandbox, "index.js"), "for (;;) {}\n");
  expect(await run("run_tests", {})).toMatch(/^0 of 14 tests passed, 0 failed\.\nThe run did not come to its end/);
});

test("a run of tests that is called off is killed, and fails with the reason", async () => {
  writeFileSync(join(root, "sandboxes", sandbox, "index.js"), "setInterval(() => {}, 1000);\n");
  const controller = new AbortController();
  const place = { sandbox, target };
  const running = tools.run(place, { name: "run_tests", arguments: "{}" }, controller.signal);
  controller.abort(new Error("retired"));
  await expect(running).rejects.toThrow("retired");
  expect(await provider.status(sandbox)).toEqual({ state: "running", execs: 0 });
});

test("a long answer is cut between characters, and says how much is missing", () => {
  expect(cut("short", 5)).toBe("short");
  expect(cut("aäb", 2)).toBe("a\n[cut off after 1 of 4 bytes]\n");
  expect(cut("aäb", 3)).toBe("aä\n[cut off after 3 of 4 bytes]\n");
  expect(Buffer.byteLength(cut("x".repeat(100_000), maxAnswerBytes))).toBeLessThan(maxAnswerBytes + 100);
});

test("only what may change the sandbox needs a snapshot", () => {
  const names = ["list_files", "read_file", "edit_file", "run_tests", "unknown"];
  expect(names.filter((name) => mayChange(name))).toEqual(["edit_file", "run_tests"]);
});
