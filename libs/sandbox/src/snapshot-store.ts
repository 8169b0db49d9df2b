/**
 * Snapshots as folders: `<folder>/<id>/tree` and beside it `manifest.json`.
 *
 * A snapshot is made under a temporary name and renamed: one with a name of its own is whole. It is captured then, and
 * durable only after `makeDurable`.
 */
import { HoldpointError } from "@holdpoint/errors";
import { access, mkdir, open, readdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import * as z from "zod";
import { mapBounded } from "./bounded.ts";
import {
  isRunning,
  isSystemError,
  isTemporary,
  removeTree,
  removeWhole,
  thisProcess,
  withTemporary,
} from "./leftovers.ts";
import type { SnapshotReference, StoredSnapshot, TakenSnapshot } from "./provider.ts";
import { copyTree, treeDigest, type TreeFacts, treeFingerprint } from "./tree.ts";

const Manifest = z.object({
  version: z.literal(1),
  provider: z.string(),
  snapshotId: z.string(),
  digest: z.string(),
  files: z.int(),
  sizeBytes: z.int(),
  skipped: z.array(z.string()).readonly(),
  /** Named as `thisProcess` is. */
  takenBy: z.string(),
});
type Manifest = z.infer<typeof Manifest>;

/** How often a tree is copied that changes while it is. */
const maxCopies = 3;
/** Files that are synced or read at once. */
const lanes = 8;

/** The snapshots of one provider in `folder`, which exists. What its methods throw: see `SandboxProvider`. */
export class SnapshotStore {
  readonly #folder: string;
  readonly #provider: string;

  constructor(folder: string, provider: string) {
    this.#folder = folder;
    this.#provider = provider;
  }

  /** Copies the folder `tree`. */
  take(tree: string, snapshotId: string): Promise<TakenSnapshot> {
    return withTemporary(this.#folder, async (temporary) => {
      await mkdir(temporary);
      const { digest, files, sizeBytes, skipped } = await copyStill(tree, join(temporary, "tree"));
      const taken = { provider: this.#provider, snapshotId, digest, files, sizeBytes, skipped };
      const manifest = JSON.stringify({ version: 1, ...taken, takenBy: thisProcess } satisfies Manifest);
      await writeFile(join(temporary, "manifest.json"), manifest);
      await renameToNew(temporary, this.#homeOf(snapshotId), `snapshot ${snapshotId}`);
      return taken;
    });
  }

  async makeDurable(snapshotId: string): Promise<void> {
    const home = this.#homeOf(snapshotId);
    await readManifest(home, snapshotId);
    await syncTree(home);
    await syncPath(this.#folder);
  }

  async validate(reference: SnapshotReference): Promise<void> {
    requireSame("digest", await treeDigest(await this.#treeOf(reference)), reference);
  }

  /** Copies the tree of a snapshot to `target`, which is made; where this throws, it may be half-made. */
  async copyOut(reference: SnapshotReference, target: string): Promise<void> {
    const { digest } = await copyTree(await this.#treeOf(reference), target);
    requireSame("digest", digest, reference);
  }

  async list(): Promise<readonly StoredSnapshot[]> {
    const names = (await readdir(this.#folder)).filter((name) => !isTemporary(name)).toSorted();
    return mapBounded(names, lanes, async (snapshotId) => ({
      snapshotId,
      foreign: await isForeign(this.#homeOf(snapshotId)),
    }));
  }

  async delete(snapshotId: string): Promise<void> {
    await removeWhole(this.#folder, snapshotId);
  }

  #homeOf(snapshotId: string): string {
    return join(this.#folder, snapshotId);
  }

  async #treeOf(reference: SnapshotReference): Promise<string> {
    requireSame("provider", this.#provider, reference);
    const home = this.#homeOf(reference.snapshotId);
    const manifest = await readManifest(home, reference.snapshotId);
    requireSame("provider", manifest.provider, reference);
    requireSame("digest", manifest.digest, reference);
    return join(home, "tree");
  }
}

/** Gives what was made under a temporary path its name. @throws HoldpointError `session_conflict` where it is taken */
export async function renameToNew(temporary: string, path: string, what: string): Promise<void> {
  const taken = new HoldpointError(
    "session_conflict",
    `there is a ${what} already: use another id, or delete it first`,
  );
  if (await exists(path)) throw taken;
  try {
    await rename(temporary, path); // of a folder: fails unless what is there is an empty one
  } catch (error) {
    throw isSystemError(error, "ENOTEMPTY", "EEXIST") ? taken : error;
  }
}

export async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

/** A copy during which nothing was written. */
async function copyStill(from: string, to: string): Promise<TreeFacts> {
  for (let copies = 0; copies < maxCopies; copies += 1) {
    const facts = await copyTree(from, to);
    if ((await treeFingerprint(from)) === facts.fingerprint) return facts;
    await removeTree(to);
  }
  throw new HoldpointError("unavailable", "something writes in the sandbox all the time: stop it, then try again");
}

async function readManifest(home: string, snapshotId: string): Promise<Manifest> {
  const text = await readFile(join(home, "manifest.json"), "utf8").catch((cause: unknown) => {
    if (!isSystemError(cause, "ENOENT")) throw cause;
    throw new HoldpointError("invalid_checkpoint_state", `there is no snapshot ${snapshotId}`, { cause });
  });
  const parsed = Manifest.safeParse(tryJson(text));
  if (parsed.success) return parsed.data;
  throw new HoldpointError("invalid_checkpoint_state", `the manifest of snapshot ${snapshotId} is damaged`);
}

function tryJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function requireSame(what: "provider" | "digest", found: string, reference: SnapshotReference): void {
  if (found === reference[what]) return;
  throw new HoldpointError(
    "invalid_checkpoint_state",
    `snapshot ${reference.snapshotId}: expected ${what} ${reference[what]}, found ${found}`,
  );
}

async function isForeign(home: string): Promise<boolean> {
  const text = await readFile(join(home, "manifest.json"), "utf8").catch(() => "");
  const { data } = Manifest.safeParse(tryJson(text));
  return data !== undefined && data.takenBy !== thisProcess && isRunning(data.takenBy);
}

/** Syncs every file and folder below and including `path`, the folders last. */
async function syncTree(path: string): Promise<void> {
  const entries = await readdir(path, { recursive: true, withFileTypes: true });
  const at = (kept: (typeof entries)[number]) => join(kept.parentPath, kept.name);
  await mapBounded(entries.filter((entry) => entry.isFile()).map(at), lanes, syncPath);
  await mapBounded(entries.filter((entry) => entry.isDirectory()).map(at), lanes, syncPath);
  await syncPath(path);
}

async function syncPath(path: string): Promise<void> {
  const file = await open(path, "r");
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}
