/** Which snapshots there are, by the log: a fold over the events of a resources server. Pure. */
import type { ResourcesEvent } from "@holdpoint/schemas";

/** The events that the index is made of; `snapshot.deleted` stands in the log before anything is freed. */
export type SnapshotEvent = Extract<
  ResourcesEvent,
  { type: "snapshot.taken" } | { type: "snapshot.durable" } | { type: "snapshot.deleted" }
>;

type Taken = Extract<SnapshotEvent, { type: "snapshot.taken" }>["data"];

export interface SnapshotRecord extends Readonly<Taken> {
  readonly durable: boolean;
}

/** By the snapshot's id, in the order in which they were taken. */
export type SnapshotIndex = ReadonlyMap<string, SnapshotRecord>;

export const emptyIndex: SnapshotIndex = new Map();

/** Whether `event` concerns the index. */
export function isSnapshotEvent(event: { readonly type: string }): event is SnapshotEvent {
  return event.type === "snapshot.taken" || event.type === "snapshot.durable" || event.type === "snapshot.deleted";
}

/** The index after `events`, oldest first. Total. One copy for all of them: give it as many as there are. */
export function foldSnapshots(index: SnapshotIndex, events: readonly SnapshotEvent[]): SnapshotIndex {
  const after = new Map(index);
  for (const event of events) {
    const known = after.get(event.data.snapshot);
    if (event.type === "snapshot.taken") after.set(event.data.snapshot, { ...event.data, durable: false });
    else if (event.type === "snapshot.deleted") after.delete(event.data.snapshot);
    else if (known !== undefined) after.set(event.data.snapshot, { ...known, durable: true });
  }
  return after;
}
