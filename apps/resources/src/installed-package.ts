/** The packages under repair, as npm installed them for this server: where they lie, and what their tests import. */
import { HoldpointError } from "@holdpoint/errors";
import { packageNamed, type PackageSpec, type Task } from "@holdpoint/repair";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { delimiter, dirname, join } from "node:path";

export interface InstalledPackage {
  readonly spec: PackageSpec;
  /** The folder of the package, untouched. Nobody writes in it. */
  readonly home: string;
  /** For `NODE_PATH`: where the tests find `tape` and what the package depends on, without anything in the sandbox. */
  readonly nodePath: string;
}

const require = createRequire(import.meta.url);

/** @throws HoldpointError `invalid_request` where the name is none of the workload's */
export function installedPackage(name: string): InstalledPackage {
  const spec = packageNamed(name);
  if (spec === undefined) throw new HoldpointError("invalid_request", `${name} is no package of the repair workload`);
  const home = homeOf(name);
  const folders = new Set([home, homeOf("tape")].map((folder) => dirname(folder)));
  return { spec, home, nodePath: [...folders].join(delimiter) };
}

/** The file that the task breaks, as it was shipped. */
export function shippedSource({ home }: InstalledPackage, { file }: Pick<Task, "file">): Promise<string> {
  return readFile(join(home, file), "utf8");
}

function homeOf(name: string): string {
  return dirname(require.resolve(`${name}/package.json`));
}
