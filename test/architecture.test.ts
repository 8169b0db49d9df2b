/**
 * Which package may depend on which, and what no file may hold.
 *
 * `knip --strict` holds imports to the manifests; this holds the manifests to the ranks.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import * as z from "zod";

const root = join(import.meta.dirname, "..");

/** A package depends on earlier ranks only, never on a neighbour. */
const pureRanks = [
  ["errors"],
  ["schemas"],
  ["eventsourcing"],
  ["session", "repair"],
  ["checkpoint", "episode", "ledger"],
];
const ranks = [
  ...pureRanks,
  ["jetstream", "broker", "sandbox", "telemetry"], // the adapters
  ["participant", "client"], // the SDKs
  ["testing"],
  ["coordinator", "environment", "agent", "resources", "model", "trainer", "cli"], // the apps
];

/** What tests of any package may use, whatever its rank. */
const forTests = ["testing", "broker"];

const scope = "@holdpoint/";
const Dependencies = z.record(z.string(), z.string()).default({});
const Manifest = z.object({
  name: z.string().startsWith(scope),
  dependencies: Dependencies,
  devDependencies: Dependencies,
});

const folders = [
  "schemas",
  ...["libs", "apps"].flatMap((top) => readdirSync(join(root, top)).map((name) => join(top, name))),
];
const packages = folders
  .filter((folder) => existsSync(join(root, folder, "package.json")))
  .map((folder) => {
    const manifest = Manifest.parse(JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8")));
    const { name, dependencies, devDependencies } = manifest;
    return { folder, name: name.slice(scope.length), uses: ours(dependencies), testsWith: ours(devDependencies) };
  });

/** The packages of this workspace among `dependencies`. */
function ours(dependencies: Readonly<Record<string, string>>): readonly string[] {
  return Object.keys(dependencies).flatMap((name) => (name.startsWith(scope) ? [name.slice(scope.length)] : []));
}

function rankOf(name: string): number {
  return ranks.findIndex((rank) => rank.includes(name));
}

describe.each(packages)("$name", ({ name, uses, testsWith }) => {
  test("has a rank", () => {
    expect(rankOf(name)).toBeGreaterThanOrEqual(0);
  });

  test("depends on lower ranks only", () => {
    expect(uses.filter((other) => rankOf(other) >= rankOf(name))).toEqual([]);
  });

  test("is tested with lower ranks, and with what is made for tests", () => {
    const others = testsWith.filter((other) => !forTests.includes(other));
    expect(others.filter((other) => rankOf(other) >= rankOf(name))).toEqual([]);
  });
});

test("every package that has a rank is there", () => {
  expect(packages.map(({ name }) => name).toSorted()).toEqual(ranks.flat().toSorted());
});

/** The tracked files, by their path from the root; where this is no git checkout, all files of the workspace. */
function trackedFiles(): readonly string[] {
  try {
    const listed = execFileSync("git", ["ls-files", "-z"], {
      cwd: root,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    });
    return listed.split("\0");
  } catch {
    return ["apps", "docs", "libs", "schemas", "test"].flatMap((top) =>
      readdirSync(join(root, top), { recursive: true, encoding: "utf8" }).map((path) => join(top, path)),
    );
  }
}

function isFile(path: string): boolean {
  return statSync(join(root, path), { throwIfNoEntry: false })?.isFile() === true;
}

const files = trackedFiles().filter((path) => !path.includes("node_modules") && isFile(path));
const texts = new Map(files.map((path) => [path, readFileSync(join(root, path), "utf8")]));
const code = files.filter((path) => path.endsWith(".ts"));

function textOf(path: string): string {
  return texts.get(path) ?? "";
}

/** What a module imports, by name. */
function importsOf(path: string): readonly string[] {
  return [...textOf(path).matchAll(/(?:from|import)\s*\(?\s*"([^"]+)"/g)].map(([, name = ""]) => name);
}

test("a pure package imports no platform, no broker and no logger", () => {
  const sources = packages
    .filter(({ name }) => pureRanks.flat().includes(name))
    .flatMap(({ folder }) => code.filter((path) => path.startsWith(`${folder}/src/`)));
  const impure = sources.flatMap((path) =>
    importsOf(path)
      .filter((name) => /^(?:node:|nats$|@nats-io\/|pino$)/.test(name))
      .map((name) => `${path} imports ${name}`),
  );
  expect(sources.length).toBeGreaterThan(30);
  expect(impure).toEqual([]);
});

test("no other package's source but jetstream's imports the broker's client", () => {
  const sources = code.filter((path) => path.includes("/src/") && !path.startsWith("libs/jetstream/"));
  expect(sources.filter((path) => importsOf(path).some((name) => /^(?:nats$|@nats-io\/)/.test(name)))).toEqual([]);
});

/** Lines that are neither blank nor comments. */
function linesOfCode(path: string): number {
  return textOf(path)
    .split("\n")
    .filter((line) => !/^\s*(?:$|\/\/|\/\*|\*)/.test(line)).length;
}

test("no file has more than 300 lines of code", () => {
  expect(code.filter((path) => linesOfCode(path) > 300)).toEqual([]);
});

/** The files in whose text the pattern is found. */
function naming(pattern: RegExp): readonly string[] {
  return files.filter((path) => pattern.test(textOf(path)));
}

describe("no file", () => {
  test("names the host of a package registry", () => {
    expect(naming(/\b(?:registry|npm|proxy|sum)\.(?:npmjs|yarnpkg|pkg|golang)\.[a-z]+\b/)).toEqual([]);
  });

  test("names a path in somebody's home, or where this was written", () => {
    expect(naming(/(?<![\w.~)}-])\/(?:home|root|Users|work)\/\w/)).toEqual([]);
  });
});
