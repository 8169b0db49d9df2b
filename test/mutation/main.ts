/**
 * Mutation tests of the pure packages, one after the other, each by its own tests: `npm run mutate`, or `npm run mutate -- session`
 * for some of them. Exits with 1 where a package's score is below the threshold in `stryker.config.json`.
 */
import { spawnSync } from "node:child_process";
import { pure } from "./packages.ts";

const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !pure.includes(name));
if (unknown.length > 0) throw new Error(`no pure package ${unknown.join(", ")}; expected some of ${pure.join(", ")}`);

for (const name of asked.length > 0 ? asked : pure) {
  const env = { ...process.env, HOLDPOINT_MUTATED: name };
  // What a module computes when it loads, such as the tables of broken packages, would run all tests for each of its mutants.
  const options = name === "repair" ? ["--ignoreStatic"] : [];
  const { status } = spawnSync("stryker", ["run", ...options, "--mutate", `libs/${name}/src/**/*.ts`], {
    stdio: "inherit",
    env,
  });
  if (status !== 0) process.exitCode = 1;
}
