/**
 * A snapshot of a process' fold (L14): what it holds after a sequence, so that its successor folds only what came later.
 *
 * It is written by V8's own serializer, which keeps what values share, and is read by the same version alone. Whatever is wrong
 * with it, it counts as none: the replay from the start is the truth.
 */
import type { ParticipantGate } from "@holdpoint/checkpoint";
import type { SnapshotStore } from "@holdpoint/eventsourcing";
import { schemaVersion } from "@holdpoint/schemas";
import type { SavedSessions } from "@holdpoint/session";
import { deserialize, serialize } from "node:v8";
import * as z from "zod";
import type { SavedDirectory } from "./directory.ts";

/** Changed with every change of what a fold makes of the same events. */
const foldVersion = 3;
export const snapshotVersion = `${schemaVersion}.${foldVersion}.${process.versions.v8}`;

export interface FoldSnapshot<State> {
  readonly version: string;
  /** The role, instance and worker whose fold it is. */
  readonly name: string;
  /** Every event up to this sequence is in it. */
  readonly upTo: number;
  readonly gate: ParticipantGate;
  readonly directory: SavedDirectory;
  readonly sessions: SavedSessions<State>;
  readonly outages: readonly { readonly fromMs: number; readonly toMs: number }[];
  readonly latestMs: number;
}

const Stamp = z.looseObject({ version: z.literal(snapshotVersion), name: z.string(), upTo: z.int().positive() });

/** Saves `snapshot`. Never fails: one that cannot be written, such as a very deep one, is none. @returns whether it was saved */
export async function saveSnapshot<State>(store: SnapshotStore, snapshot: FoldSnapshot<State>): Promise<boolean> {
  try {
    await store.save(snapshot.name, serialize(snapshot));
    return true;
  } catch {
    return false;
  }
}

/** The snapshot under `name`; undefined unless it is whole, of this version, and of a past that the log has. */
export async function loadSnapshot<State>(
  store: SnapshotStore,
  name: string,
  lastSequence: number,
): Promise<FoldSnapshot<State> | undefined> {
  try {
    const bytes = await store.load(name);
    if (bytes === undefined) return undefined;
    const value: unknown = deserialize(bytes);
    return isUsable<State>(value, name, lastSequence) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isUsable<State>(value: unknown, name: string, lastSequence: number): value is FoldSnapshot<State> {
  const stamp = Stamp.safeParse(value);
  return stamp.success && stamp.data.name === name && stamp.data.upTo <= lastSequence;
}
