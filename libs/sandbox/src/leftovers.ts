/**
 * Temporary names, and who may clear them away.
 *
 * What is not whole yet lies under `.tmp-<process>-<n>`, beside its final name and on the same file system, and is renamed
 * when it is whole. A process is named by its id and its start, so that a name outlives neither the process nor a reuse of
 * its id: leftovers are what no running process has in hand.
 */
import { chmodSync, readdirSync, readFileSync, renameSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";

const prefix = ".tmp-";

/** Temporary paths that this process has in hand. */
const inHand = new Set<string>();
let counter = 0;

/** This process: its id, and when it started, in the kernel's ticks (0 where the kernel does not tell). */
export const thisProcess = `${process.pid}-${startOf(process.pid) ?? 0}`;

/** Whether the process that was named by `thisProcess` runs. */
export function isRunning(name: string): boolean {
  const [pid = 0, start = 0] = name.split("-").map(Number);
  if (start > 0) return startOf(pid) === start;
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Whether `name`, of an entry of a folder, is a temporary one. */
export function isTemporary(name: string): boolean {
  return name.startsWith(prefix);
}

/** Lets `fill` make a file or folder under a temporary path of `folder`; whatever it leaves there is removed. */
export async function withTemporary<Result>(folder: string, fill: (path: string) => Promise<Result>): Promise<Result> {
  counter += 1;
  const path = join(folder, `${prefix}${thisProcess}-${counter}`);
  inHand.add(path);
  try {
    return await fill(path);
  } finally {
    await removeTree(path);
    inHand.delete(path);
  }
}

/** Takes `path` out of the way in one step, then removes it: a half-removed tree never has a name of its own. */
export async function removeWhole(folder: string, name: string): Promise<boolean> {
  return withTemporary(folder, async (path) => {
    try {
      renameSync(join(folder, name), path);
      return true;
    } catch (error) {
      if (isSystemError(error, "ENOENT")) return false;
      throw error;
    }
  });
}

/** Paths of what was left in `folder` by processes that no longer run, and by this one where it failed to clear up. */
export function leftoversIn(folder: string): readonly string[] {
  return readdirSync(folder)
    .filter(isTemporary)
    .map((name) => ({ path: join(folder, name), owner: name.slice(prefix.length).split("-").slice(0, 2).join("-") }))
    .filter(({ path, owner }) => (owner === thisProcess ? !inHand.has(path) : !isRunning(owner)))
    .map(({ path }) => path)
    .toSorted();
}

/** Removes a tree, also where it holds folders that may not be written. No error where there is none. */
export async function removeTree(path: string): Promise<void> {
  const remove = () => rm(path, { recursive: true, force: true, maxRetries: 3 });
  try {
    await remove();
  } catch (error) {
    if (!isSystemError(error, "EACCES", "EPERM")) throw error;
    openFolders(path);
    await remove();
  }
}

function openFolders(path: string): void {
  chmodSync(path, 0o700);
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    if (entry.isDirectory()) openFolders(join(path, entry.name));
  }
}

/** Whether `error` is the operating system's, of this code. */
export function isSystemError(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && "code" in error && codes.includes(String(error.code));
}

/**
 * Field 22 of `/proc/<pid>/stat`; undefined where there is no such process, or only its corpse. The name in field 2 may hold
 * anything, so fields are counted from its closing parenthesis.
 */
function startOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" || fields[0] === "X" ? undefined : Number(fields[19]);
  } catch {
    return undefined;
  }
}
