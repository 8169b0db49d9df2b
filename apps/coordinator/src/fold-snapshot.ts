/**
 * Snapshots of the coordinator's fold (L14): the whole state, with all that is pending, after one message of the stream.
 *
 * That message is named by its digest (L15), so that a snapshot of a stream that was rolled back or made anew counts as none.
 */
import { anchorOf, type CoordinatorState, foldVersion } from "@holdpoint/checkpoint";
import { HoldpointError } from "@holdpoint/errors";
import type { EventLog, SnapshotStore, StoredMessage } from "@holdpoint/eventsourcing";
import { foldStamp, loadFold, saveFold, type StampedFold } from "@holdpoint/participant";

interface CoordinatorFold extends StampedFold {
  /** Of the message at `upTo`. */
  readonly anchor: string;
  readonly state: CoordinatorState;
}

export interface FoldSnapshotsOptions {
  readonly log: EventLog;
  readonly store: SnapshotStore;
  /** Lower-case hexadecimal SHA-256 of a text. */
  readonly hash: (text: string) => string;
  /** How much is folded, in bytes, before a snapshot is worth its saving. Default: 32 MiB. */
  readonly everyBytes?: number;
}

const version = foldStamp(foldVersion);
const name = "coordinator";

/** What a message weighs beside its body: what it costs to fetch an empty one, as bytes of a large one. */
const messageBytes = 2_048;
/** So much is folded within half a second. */
const defaultEveryBytes = 32 * 2 ** 20;
/** A snapshot is saved once in so many times its own size, so that saving never costs more than a part of what is folded. */
const timesItself = 4;

export class FoldSnapshots {
  readonly #options: FoldSnapshotsOptions;
  /** Folded since the latest snapshot, in bytes. */
  #folded = 0;
  #latestBytes = 0;
  #last: StoredMessage | undefined;
  #saving = false;

  constructor(options: FoldSnapshotsOptions) {
    this.#options = options;
  }

  /** To be told of every message, after it is folded in. */
  folded(message: StoredMessage): void {
    this.#last = message;
    this.#folded += message.body.length + messageBytes;
  }

  /** The latest state that was saved of a past that the log has, and the message that it ends with; undefined where there is none. */
  async load(): Promise<{ readonly state: CoordinatorState; readonly last: StoredMessage } | undefined> {
    const { log, store, hash } = this.#options;
    const found = await loadFold<CoordinatorFold>(store, { version, name, upTo: await log.lastSequence() });
    if (found === undefined) return undefined;
    try {
      const last = await log.get(found.upTo);
      return anchorOf(last, hash) === found.anchor ? { state: found.state, last } : undefined;
    } catch (error) {
      if (HoldpointError.is(error, "not_found")) return undefined; // cut off
      throw error;
    }
  }

  /** Saves `state`, which is written out before this returns, where enough was folded since the latest was saved. Never fails. */
  async saveIfDue(state: CoordinatorState): Promise<void> {
    const { store, hash, everyBytes = defaultEveryBytes } = this.#options;
    const last = this.#last;
    const isDue = this.#folded >= Math.max(everyBytes, timesItself * this.#latestBytes);
    if (!isDue || this.#saving || last?.sequence !== state.sequence) return;
    this.#saving = true;
    this.#folded = 0;
    const fold: CoordinatorFold = { version, name, upTo: state.sequence, anchor: anchorOf(last, hash), state };
    this.#latestBytes = (await saveFold(store, fold)) ?? this.#latestBytes;
    this.#saving = false;
  }
}
