/** Proves that a run left nothing: no process, no mount, nothing in the folders where sandboxes and snapshots rest. */
import { readdir, readFile, readlink } from "node:fs/promises";
import { join, sep } from "node:path";

/** The variable by which every process of a run, and whatever it starts, is known. */
export const markVariable = "HOLDPOINT_MARK";

export interface LeftoverOptions {
  /** The value of the mark of this run. */
  readonly mark: string;
  /** The run's work folder. */
  readonly folder: string;
  /** Folders that have to be empty, or not be there, each with what it holds. */
  readonly empty: readonly { readonly path: string; readonly what: string }[];
}

/** What is left of a run, as sentences. */
export async function leftovers({ mark, folder, empty }: LeftoverOptions): Promise<readonly string[]> {
  const found = await Promise.all([
    processes(mark, folder),
    mounts(folder),
    ...empty.map(({ path, what }) => entries(path, what)),
  ]);
  return found.flat();
}

/** Processes that carry the mark, or work in the folder. Known where the system has /proc. */
async function processes(mark: string, folder: string): Promise<readonly string[]> {
  const names = await list("/proc");
  const ids = names.filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid);
  const found = await Promise.all(ids.map((id) => describe(id, mark, folder)));
  return found.filter((sentence) => sentence !== undefined);
}

async function describe(id: string, mark: string, folder: string): Promise<string | undefined> {
  const [environment, directory, command, stat] = await Promise.all([
    text(`/proc/${id}/environ`),
    readlink(`/proc/${id}/cwd`).catch(() => ""),
    text(`/proc/${id}/cmdline`),
    text(`/proc/${id}/stat`),
  ]);
  const isZombie = /\) [ZX] /.test(stat);
  const isOurs = environment.includes(`${markVariable}=${mark}`) || isInside(directory, folder);
  if (!isOurs || isZombie) return undefined;
  return `process ${id} is still there: ${command.replaceAll("\0", " ").trim().slice(0, 160)}`;
}

async function mounts(folder: string): Promise<readonly string[]> {
  const lines = (await text("/proc/self/mounts")).split("\n");
  const points = lines.map((line) => line.split(" ")[1] ?? "").filter((point) => isInside(point, folder));
  return points.map((point) => `${point} is still mounted`);
}

async function entries(path: string, what: string): Promise<readonly string[]> {
  const names = await list(path);
  if (names.length === 0) return [];
  return [`${names.length} ${what} left in ${path}: ${names.slice(0, 5).join(", ")}`];
}

function isInside(path: string, folder: string): boolean {
  return path === folder || path.startsWith(join(folder, sep));
}

/** The names in a folder; none where it cannot be read. */
async function list(path: string): Promise<readonly string[]> {
  return readdir(path).catch(() => []);
}

async function text(path: string): Promise<string> {
  return readFile(path, "utf8").catch(() => "");
}
