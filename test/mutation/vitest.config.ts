/**
 * The tests that mutations of `HOLDPOINT_MUTATED` have to fail: the package's own. Packages are found by folder, not through
 * `node_modules`, whose links would lead out of the copy that is mutated.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { defineConfig } from "vitest/config";

const root = join(import.meta.dirname, "../..");
const folders = ["schemas", ...readdirSync(join(root, "libs")).map((name) => join("libs", name))];
const mutated = process.env["HOLDPOINT_MUTATED"] ?? "*";

/** These run thousands of histories or whole trainings: for each mutant that is too much, and the others notice it without them. */
const explorations = [
  "explored",
  "explored-key",
  "explored-mutants",
  "reference",
  "crash",
  "process-crash",
  "any-order",
  "large",
  "fold-snapshot",
].map((name) => `**/test/${name}.test.ts`);

export default defineConfig({
  root,
  resolve: {
    alias: folders.map((folder) => ({
      find: folder.replace(/^(?:libs.)?/, "@holdpoint/"),
      replacement: join(root, folder, "src/index.ts"),
    })),
  },
  test: {
    include: [`libs/${mutated}/test/**/*.test.ts`],
    exclude: explorations,
    testTimeout: 60_000,
    maxWorkers: 1,
    isolate: false, // pure tests share nothing; loading each file anew for each mutant took most of the time
  },
});
