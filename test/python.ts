/** Python for the participant that is written in it, with the packages that it needs, in a folder of the checkout. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const root = join(import.meta.dirname, "..");
const requirements = join(root, "test/python/requirements.txt");

/**
 * The environment in which `python3` finds the packages of `test/python/requirements.txt`. They are fetched once.
 *
 * @returns a sentence where there is no Python here, or they cannot be fetched
 */
export async function pythonEnvironment(): Promise<Readonly<Record<string, string>> | string> {
  const name = createHash("sha256").update(readFileSync(requirements)).digest("hex").slice(0, 16);
  const folder = join(root, ".cache", `python-${name}`);
  try {
    if (!existsSync(folder)) await install(folder);
    return { PYTHONPATH: folder, PYTHONDONTWRITEBYTECODE: "1" };
  } catch (error) {
    return `no Python participant here: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** Whole or not at all: whoever comes second finds it there. */
async function install(folder: string): Promise<void> {
  await mkdir(join(folder, ".."), { recursive: true });
  const making = await mkdtemp(`${folder}-making-`);
  const parameters = [
    "-m",
    "pip",
    "install",
    "--quiet",
    "--no-input",
    "--target",
    making,
    "--requirement",
    requirements,
  ];
  try {
    await run("python3", parameters, { timeout: 120_000 });
    await rename(making, folder);
  } catch (error) {
    await rm(making, { recursive: true, force: true });
    if (!existsSync(folder)) throw error;
  }
}
