/**
 * Writes `src/killing-sites.ts`: for each package, the sites whose flip its tests notice quickly.
 *
 *   node libs/repair/scripts/find-killing-sites.ts      some three minutes on two cores
 *
 * A site is in the table if with its flip alone the run of the tests ends by itself, within the bound, and does not pass.
 * An entry is its position and its line: `167@6`.
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { allPassed, parseTestReport } from "../src/test-report.ts";
import { flip, type Site, siteKinds, sites } from "../src/sites.ts";
import { type PackageSpec, packages, testArguments } from "../src/packages.ts";

const cpuSeconds = 1;
const lanes = 2;
const require = createRequire(import.meta.url);
const nodePath = join(dirname(require.resolve("tape/package.json")), "..");

interface Run {
  readonly output: string;
  readonly timedOut: boolean;
}

function runTests(folder: string, spec: PackageSpec): Promise<Run> {
  const limited = ["-c", `ulimit -t ${cpuSeconds}; exec "$0" "$@"`, process.execPath, ...testArguments(spec)];
  const child = spawn("/bin/sh", limited, { cwd: folder, env: { NODE_PATH: nodePath } });
  const output: [string[], string[]] = [[], []];
  child.stdout.setEncoding("utf8").on("data", (text: string) => output[0].push(text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => output[1].push(text));
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (_, signal) => resolve({ output: output.flat().join(""), timedOut: signal !== null }));
  });
}

async function killingSites(spec: PackageSpec): Promise<readonly Site[]> {
  const home = dirname(require.resolve(`${spec.name}/package.json`));
  const source = readFileSync(join(home, spec.file), "utf8");
  const queue = [...sites(source)];
  const killing: Site[] = [];
  const lane = async () => {
    const folder = mkdtempSync(join(tmpdir(), "killing-"));
    cpSync(home, folder, { recursive: true });
    const untouched = parseTestReport((await runTests(folder, spec)).output);
    if (!allPassed(untouched, spec.expectedTests)) throw new Error(`${spec.name}: its own tests fail`);
    for (let site = queue.shift(); site !== undefined; site = queue.shift()) {
      writeFileSync(join(folder, spec.file), flip(source, site));
      const { output, timedOut } = await runTests(folder, spec);
      if (!timedOut && !allPassed(parseTestReport(output), spec.expectedTests)) killing.push(site);
    }
    rmSync(folder, { recursive: true });
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  process.stderr.write(`${spec.name}: ${killing.length} of ${sites(source).length} sites\n`);
  return killing.toSorted((one, other) => one.position - other.position);
}

function entryOf(spec: PackageSpec, killing: readonly Site[]): readonly [string, unknown] {
  const home = dirname(require.resolve(`${spec.name}/package.json`));
  const source = readFileSync(join(home, spec.file), "utf8");
  const sourceDigest = createHash("sha256").update(source).digest("hex");
  const places = siteKinds.flatMap((kind) => {
    const found = killing.filter((site) => site.kind === kind);
    return found.length === 0 ? [] : [[kind, found.map((site) => `${site.position}@${site.line}`).join(" ")] as const];
  });
  return [
    spec.name,
    { version: spec.version, sourceDigest, lines: source.split("\n").length, sites: Object.fromEntries(places) },
  ];
}

const entries: (readonly [string, unknown])[] = [];
for (const spec of packages) entries.push(entryOf(spec, await killingSites(spec)));
writeFileSync(
  new URL("../src/killing-sites.ts", import.meta.url),
  `/** Written by \`scripts/find-killing-sites.ts\`; not by hand. Format it with oxfmt. */
import type { KillingSites } from "./task.ts";

export const killingSites: Readonly<Record<string, KillingSites>> = ${JSON.stringify(Object.fromEntries(entries))};
`,
);
