/**
 * The packages that are broken and repaired, each with its own tests as shipped in its npm tarball.
 *
 * This page owns how their tests are run; installing them is the business of whoever runs them (the resources server, and
 * the tests of this package). A sandbox holds a copy of the package's own folder; what the tests import beside it (`tape`,
 * dependencies) is found by `NODE_PATH`.
 */

export interface PackageSpec {
  /** As on npm, and one token of an id. */
  readonly name: string;
  /** Exactly this one: the table of killing sites belongs to its source. */
  readonly version: string;
  /** The file that is broken, relative to the package's folder. */
  readonly file: string;
  /** Run in this order, in one process. Tests that need more than `tape` are left out. */
  readonly testFiles: readonly string[];
  /** `tap`: they print it. `assert`: they throw, and the runner prints one test for each file. */
  readonly style: "tap" | "assert";
  /** Tests in a report of the unbroken package. */
  readonly expectedTests: number;
}

const minimistTests = [
  "all_bool",
  "bool",
  "dash",
  "default_bool",
  "dotted",
  "kv_short",
  "long",
  "num",
  "parse",
  "parse_modified",
  "proto",
  "short",
  "stop_early",
  "unknown",
  "whitespace",
];

/** By name. */
export const packages: readonly PackageSpec[] = [
  {
    name: "expand-template",
    version: "2.0.3",
    file: "index.js",
    testFiles: ["test.js"],
    style: "tap",
    expectedTests: 14,
  },
  {
    name: "fast-json-stable-stringify",
    version: "2.1.0",
    file: "index.js",
    testFiles: inFolder(["cmp", "nested", "str", "to-json"]),
    style: "tap",
    expectedTests: 16,
  },
  {
    name: "glob-to-regexp",
    version: "0.4.1",
    file: "index.js",
    testFiles: ["test.js"],
    style: "assert",
    expectedTests: 1,
  },
  {
    name: "json-stable-stringify",
    version: "1.1.1",
    file: "index.js",
    testFiles: inFolder(["cmp", "nested", "replacer", "space", "str", "to-json"]),
    style: "tap",
    expectedTests: 27,
  },
  {
    name: "minimist",
    version: "1.2.8",
    file: "index.js",
    testFiles: inFolder(minimistTests),
    style: "tap",
    expectedTests: 153,
  },
  {
    name: "text-table",
    version: "0.2.0",
    file: "index.js",
    testFiles: inFolder(["align", "center", "dotalign", "doubledot", "table"]),
    style: "tap",
    expectedTests: 5,
  },
];

/** The package of this name, if it is one of ours. */
export function packageNamed(name: string): PackageSpec | undefined {
  return packages.find((known) => known.name === name);
}

/**
 * Output is written before the tests go on. Else Node keeps back what a pipe does not take at once, and loses it when the run
 * crashes or is killed: the same source would give another report wherever its reader is slow.
 */
const runBlocking = `for (const stream of [process.stdout, process.stderr]) stream._handle?.setBlocking?.(true);`;

const runTap = `for (const file of process.argv.slice(1)) require(require("path").resolve(file));`;

const runAssert = `
const files = process.argv.slice(1);
console.log("TAP version 13");
files.forEach((file, index) => {
  try {
    require(require("path").resolve(file));
    console.log("ok " + (index + 1) + " " + file);
  } catch (error) {
    process.exitCode = 1;
    console.log("not ok " + (index + 1) + " " + file + ": " + String(error.message).replace(/\\s+/g, " "));
    console.log("  ---\\n" + String(error.stack).replace(/^/gm, "    ") + "\\n  ...");
  }
});
console.log("1.." + files.length);`;

/**
 * CPU seconds after which a run of the tests is to be killed: one that comes to its end takes 0.1 to 0.3. CPU time, and not
 * the time of the day, so that the same source gives the same report on a busy machine.
 */
export const testCpuSeconds = 2;

/** Arguments for `node`, in the package's folder: runs all its tests in one process, in a small heap, and prints TAP. */
export function testArguments(spec: Pick<PackageSpec, "style" | "testFiles">): readonly string[] {
  const script = `${runBlocking}\n${spec.style === "tap" ? runTap : runAssert}`;
  return ["--max-old-space-size=64", "-e", script, "--", ...spec.testFiles];
}

function inFolder(names: readonly string[]): readonly string[] {
  return names.map((name) => `test/${name}.js`);
}
