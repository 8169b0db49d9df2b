/**
 * Snapshots of folds (L14): what a process holds after a sequence, so that its successor folds only what came later.
 *
 * They are written by V8's own serializer, which keeps what values share, and read by the same version alone. Whatever is wrong
 * with one, it counts as none: the replay from the start is the truth.
 */
import type { SnapshotStore } from "@holdpoint/eventsourcing";
import { schemaVersion } from "@holdpoint/schemas";
import { deserialize, serialize } from "node:v8";
import * as z from "zod";

export interface StampedFold {
  /** As `foldStamp` makes it. */
  readonly version: string;
  /** Whose fold it is: one or more subject tokens. */
  readonly name: string;
  /** Every event up to this sequence is in it. */
  readonly upTo: number;
}

/** The version under which a fold of `foldVersion` can be read. */
export function foldStamp(foldVersion: number): string {
  return `${schemaVersion}.${foldVersion}.${process.versions.v8}`;
}

/**
 * Saves `fold`. Never fails: one that cannot be written, such as a very deep one, is none.
 *
 * @returns its size in bytes; undefined where it was not saved
 */
export async function saveFold(store: SnapshotStore, fold: StampedFold): Promise<number | undefined> {
  try {
    const bytes = serialize(fold);
    await store.save(fold.name, bytes);
    return bytes.length;
  } catch {
    return undefined;
  }
}

/** The snapshot that has the name and the version of `wanted`, and no more than `wanted.upTo`; undefined where there is none. */
export async function loadFold<Fold extends StampedFold>(
  store: SnapshotStore,
  wanted: StampedFold,
): Promise<Fold | undefined> {
  try {
    const bytes = await store.load(wanted.name);
    if (bytes === undefined) return undefined;
    const value: unknown = deserialize(bytes);
    return isUsable<Fold>(value, wanted) ? value : undefined;
  } catch {
    return undefined;
  }
}

const Stamp = z.looseObject({ version: z.string(), name: z.string(), upTo: z.int().positive() });

function isUsable<Fold extends StampedFold>(value: unknown, wanted: Pick<Fold, keyof StampedFold>): value is Fold {
  const { data } = Stamp.safeParse(value);
  return data?.version === wanted.version && data.name === wanted.name && data.upTo <= wanted.upTo;
}
