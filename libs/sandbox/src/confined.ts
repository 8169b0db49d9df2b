/**
 * Files of a sandbox as seen from outside it, so that no path leads out.
 *
 * A path is refused if it is absolute, has a `..` that leaves, or passes a symbolic link that leaves. Links that stay inside are
 * followed. What runs in the sandbox could put a link in place between the look and the act: so, where the kernel says what
 * an open file is (`/proc/self/fd`), that is what is judged, and what is written is put in place by a rename within the
 * folder that was judged.
 */
import { HoldpointError } from "@holdpoint/errors";
import { constants } from "node:fs";
import {
  chmod,
  type FileHandle,
  lstat,
  mkdir,
  open,
  readdir,
  readlink,
  realpath,
  rename,
  writeFile,
} from "node:fs/promises";
import { basename, dirname, isAbsolute, join, normalize, relative, sep } from "node:path";
import { isSystemError, withTemporary } from "./leftovers.ts";
import type { ListedFile } from "./provider.ts";

const handles = "/proc/self/fd";

/** @throws HoldpointError `not_found` where there is no such file, `invalid_request` where the path is not a file's */
export async function readConfined(root: string, path: string): Promise<Uint8Array> {
  const target = await resolveInside(root, path);
  // Not blocking: opening a pipe would wait for a writer.
  const file = await open(target, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW).catch(refuse(path));
  try {
    await requireInside(root, file, path);
    if (!(await file.stat()).isFile()) throw new HoldpointError("invalid_request", `${path} is no file`);
    return await file.readFile();
  } finally {
    await file.close();
  }
}

/** Writes a whole file of `root` by renaming it into place; `spare` is a folder of the same file system, outside the sandbox. */
export async function writeConfined(
  { root, spare }: { readonly root: string; readonly spare: string },
  path: string,
  content: string | Uint8Array,
): Promise<void> {
  const target = await targetInside(root, path);
  const mode = await modeOf(target);
  const folder = await open(dirname(target), constants.O_RDONLY | constants.O_DIRECTORY).catch(refuse(path));
  try {
    const place = await requireInside(root, folder, path);
    await withTemporary(spare, async (temporary) => {
      await writeFile(temporary, content, { flag: "wx" });
      if (mode !== undefined) await chmod(temporary, mode);
      await rename(temporary, join(place ?? dirname(target), basename(target))).catch(refuse(path));
    });
  } finally {
    await folder.close();
  }
}

/** Everything below `path`, by path. Links are listed, not followed. */
export async function listConfined(root: string, path: string): Promise<readonly ListedFile[]> {
  const top = await resolveInside(root, path);
  const home = await realpath(root);
  const entries = await readdir(top, { recursive: true, withFileTypes: true }).catch(refuse(path));
  const listed = await Promise.all(
    entries.map(async (entry): Promise<readonly ListedFile[]> => {
      const found = join(entry.parentPath, entry.name);
      const stat = await lstat(found).catch(() => undefined);
      if (stat === undefined) return []; // gone meanwhile
      const type = entry.isFile() ? "file" : entry.isDirectory() ? "folder" : entry.isSymbolicLink() ? "link" : "other";
      return [{ path: relative(home, found), type, sizeBytes: stat.size }];
    }),
  );
  return listed.flat().toSorted((one, other) => (one.path < other.path ? -1 : 1));
}

/** The real path that `path` stands for, where that lies in `root`. @throws as `readConfined` */
export async function resolveInside(root: string, path: string): Promise<string> {
  const found = await realpath(join(root, requireRelative(path))).catch(refuse(path));
  return requireBelow(await realpath(root), found, path);
}

/** Where a file of this path is to be written, with the folders above it made. */
async function targetInside(root: string, path: string): Promise<string> {
  const home = await realpath(root);
  const wanted = requireRelative(path);
  if (wanted === ".")
    throw new HoldpointError("invalid_request", "expected the path of a file, found the sandbox itself");
  let folder = home;
  for (const name of dirname(wanted).split(sep)) {
    const next = join(folder, name);
    await mkdir(next).catch((error: unknown) => {
      if (!isSystemError(error, "EEXIST")) throw error;
    });
    folder = requireBelow(home, await realpath(next).catch(refuse(path)), path);
  }
  const target = join(folder, basename(wanted));
  const link = await readlink(target).catch(() => undefined);
  return link === undefined ? target : resolveInside(root, wanted);
}

function requireRelative(path: string): string {
  const plain = normalize(path);
  const leaves = plain === ".." || plain.startsWith(`..${sep}`);
  if (path !== "" && !path.includes("\0") && !isAbsolute(path) && !leaves) return plain;
  throw new HoldpointError("invalid_request", `${JSON.stringify(path)}: expected a relative path inside the sandbox`);
}

function requireBelow(home: string, found: string, path: string): string {
  if (found === home || found.startsWith(`${home}${sep}`)) return found;
  throw new HoldpointError("invalid_request", `${JSON.stringify(path)} leads out of the sandbox`);
}

/** Judges an open file or folder by where it is. @returns a path to it that nobody can redirect, where the kernel has one */
async function requireInside(root: string, file: FileHandle, path: string): Promise<string | undefined> {
  const own = join(handles, String(file.fd));
  const place = await readlink(own).catch(() => undefined);
  if (place === undefined) return undefined;
  requireBelow(await realpath(root), place, path);
  return own;
}

async function modeOf(target: string): Promise<number | undefined> {
  const stat = await lstat(target).catch(() => undefined);
  return stat === undefined ? undefined : stat.mode & 0o7777;
}

/** What the operating system says of a path, as the caller's fault. */
function refuse(path: string): (error: unknown) => never {
  return (cause) => {
    if (isSystemError(cause, "ENOENT", "ENOTDIR")) {
      throw new HoldpointError("not_found", `there is no ${JSON.stringify(path)} in the sandbox`, { cause });
    }
    if (isSystemError(cause, "EISDIR", "ELOOP", "ENAMETOOLONG", "ENXIO", "ENOTEMPTY", "EEXIST")) {
      throw new HoldpointError("invalid_request", `${JSON.stringify(path)} is no file`, { cause });
    }
    throw cause;
  };
}
