/** The snapshot of a participant's fold (L14). */
import type { ParticipantGate } from "@holdpoint/checkpoint";
import type { SnapshotStore } from "@holdpoint/eventsourcing";
import type { SavedSessions } from "@holdpoint/session";
import type { SavedDirectory } from "./directory.ts";
import { foldStamp, loadFold, saveFold, type StampedFold } from "./stamped-fold.ts";

/** Its last part changes with every change of what a fold makes of the same events. */
export const snapshotVersion = foldStamp(8);

/** By the role, instance and worker whose fold it is. */
export interface FoldSnapshot<State> extends StampedFold {
  readonly gate: ParticipantGate;
  readonly directory: SavedDirectory;
  readonly sessions: SavedSessions<State>;
  readonly outages: readonly { readonly fromMs: number; readonly toMs: number }[];
  readonly latestMs: number;
}

/** Saves `snapshot`. Never fails: one that cannot be written is none. @returns whether it was saved */
export async function saveSnapshot<State>(store: SnapshotStore, snapshot: FoldSnapshot<State>): Promise<boolean> {
  return (await saveFold(store, snapshot)) !== undefined;
}

/** The snapshot under `name`; undefined unless it is whole, of this version, and of a past that the log has. */
export async function loadSnapshot<State>(
  store: SnapshotStore,
  name: string,
  lastSequence: number,
): Promise<FoldSnapshot<State> | undefined> {
  return loadFold<FoldSnapshot<State>>(store, { version: snapshotVersion, name, upTo: lastSequence });
}
