/**
 * The folder where programs rest that we built or fetched. Processes share it: a program appears there whole, by a rename,
 * or not at all.
 */
import { mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import type { Environment } from "./command.ts";

/** `HOLDPOINT_CACHE`, else `holdpoint` in `XDG_CACHE_HOME`, else in `~/.cache`. A relative path counts as not set. */
function cacheFolder(env: Environment): string {
  const [own, shared] = [env["HOLDPOINT_CACHE"], env["XDG_CACHE_HOME"]];
  if (own !== undefined && isAbsolute(own)) return own;
  if (shared !== undefined && isAbsolute(shared)) return join(shared, "holdpoint");
  return join(homedir(), ".cache", "holdpoint");
}

export function cachedProgram(name: string, env: Environment): string {
  return join(cacheFolder(env), "bin", process.platform === "win32" ? `${name}.exe` : name);
}

/**
 * Puts the executable that `make` leaves in a folder of its own into the cache as `name`, in the place of an earlier one.
 *
 * @param make gets an empty folder, which is removed afterwards, and returns the path of the program in it
 * @returns the path of the program in the cache
 */
export async function intoCache(
  name: string,
  env: Environment,
  make: (folder: string) => Promise<string>,
): Promise<string> {
  const target = cachedProgram(name, env);
  await mkdir(join(cacheFolder(env), "bin"), { recursive: true });
  const folder = await mkdtemp(join(cacheFolder(env), "making-"));
  try {
    const program = await make(folder);
    await rename(program, target);
    return target;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
