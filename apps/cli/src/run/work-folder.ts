/** The folder of a demo or an embedded run: in memory where there is room, since it is thrown away. */
import { mkdtemp, rm, statfs } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const shared = "/dev/shm";
/** Bytes that have to be free there. */
const roomBytes = 2 ** 30;

/** A fresh folder, named after `what` it is for, that only its owner can read. */
export async function makeWorkFolder(what: string): Promise<string> {
  return mkdtemp(join(await workFolderParent(), `holdpoint-${what}-`));
}

/** Where such folders are made. */
export async function workFolderParent(): Promise<string> {
  return (await hasRoom()) ? shared : tmpdir();
}

export async function removeWorkFolder(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
}

async function hasRoom(): Promise<boolean> {
  try {
    const { bavail, bsize } = await statfs(shared);
    return bavail * bsize > roomBytes;
  } catch {
    return false;
  }
}
