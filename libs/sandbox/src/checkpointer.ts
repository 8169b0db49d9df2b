/**
 * The sandbox checkpointer: many snapshots, forks and stops at once, the index of snapshots, and what is freed when.
 *
 * 1. The index is a fold over events in the log; the disk is compared with it, never the other way round.
 * 2. A snapshot is named in the log after it is whole. Until then, and where one of several failed, it is an orphan.
 * 3. A deletion is in the log before anything is freed: a process that can no longer append frees nothing.
 * 4. A snapshot goes when nothing references it any more, never because a sandbox or an episode ended.
 */
import { HoldpointError } from "@holdpoint/errors";
import { mapBounded } from "./bounded.ts";
import type { SandboxProvider, SnapshotReference, TakenSnapshot } from "./provider.ts";
import {
  emptyIndex,
  foldSnapshots,
  type SnapshotEvent,
  type SnapshotIndex,
  type SnapshotRecord,
} from "./snapshot-index.ts";
import { claimStateDir } from "./state-dir.ts";

export interface CheckpointerOptions {
  readonly provider: SandboxProvider;
  /** Absolute; of this server and run alone. */
  readonly stateDir: string;
  readonly server: string;
  readonly run: string;
  /** Appends to the log, all or nothing; returns once that is acknowledged. What it throws ends the operation. */
  readonly append: (events: readonly SnapshotEvent[]) => Promise<void>;
  /** What the log says so far. Default: nothing. */
  readonly index?: SnapshotIndex;
  /** How many sandboxes are worked on at once. Default: 16. */
  readonly lanes?: number;
}

export interface SnapshotOrder {
  readonly rollout: string;
  readonly attempt: number;
  readonly sandbox: string;
  /** The id that it will have. */
  readonly snapshot: string;
  /** null: taken to roll back a call. */
  readonly checkpointId: string | null;
}

export interface ForkOrder {
  readonly reference: SnapshotReference;
  /** The id of the new sandbox. */
  readonly sandbox: string;
}

export interface GarbageReport {
  /** On disk, and not in the index. */
  readonly orphans: readonly string[];
  /** In the index, and referenced by nothing. */
  readonly unreferenced: readonly string[];
  /** In the index and referenced, but not on disk: a restore would refuse them. */
  readonly missing: readonly string[];
  /** Paths of what killed processes left half-done. */
  readonly leftovers: readonly string[];
}

/**
 * Whether a kept checkpoint, a commit in progress, a live session or a restored one not yet claimed needs a snapshot. Asked
 * right before a deletion is logged.
 */
export type IsReferenced = (record: SnapshotRecord) => boolean;

const defaultLanes = 16;

/**
 * Claims `stateDir` and opens the checkpointer.
 *
 * @throws HoldpointError `invalid_request` as `claimStateDir`
 */
export async function openCheckpointer(options: CheckpointerOptions): Promise<Checkpointer> {
  await claimStateDir(options.stateDir, options);
  return new Checkpointer(options);
}

export class Checkpointer {
  readonly #provider: SandboxProvider;
  readonly #append: CheckpointerOptions["append"];
  readonly #lanes: number;
  /** Ids of snapshots that are being taken, or are whole and not yet in the log. */
  readonly #underWay = new Set<string>();
  #index: SnapshotIndex;

  constructor({ provider, append, index = emptyIndex, lanes = defaultLanes }: CheckpointerOptions) {
    this.#provider = provider;
    this.#append = append;
    this.#index = index;
    this.#lanes = lanes;
  }

  get index(): SnapshotIndex {
    return this.#index;
  }

  /** Takes in what the log says from elsewhere, such as another worker of this server. */
  observe(events: readonly SnapshotEvent[]): void {
    this.#index = foldSnapshots(this.#index, events);
  }

  /**
   * Takes all these snapshots; the sandboxes run on. They are captured, not yet durable.
   *
   * @throws what the first failed one threw, or `deadline_exceeded` when `signal` is aborted; then none is in the log, and
   *   those that were taken are orphans
   */
  async snapshot(orders: readonly SnapshotOrder[], signal?: AbortSignal): Promise<readonly TakenSnapshot[]> {
    for (const order of orders) this.#underWay.add(order.snapshot);
    try {
      const taken = await mapBounded(orders, this.#lanes, async (order) => {
        requireTime(signal);
        const snapshot = await this.#provider.snapshot(order.sandbox, order.snapshot);
        return { snapshot, order };
      });
      requireTime(signal);
      await this.#record(
        taken.map(({ order, snapshot: { digest, provider } }) => ({
          type: "snapshot.taken",
          data: { ...order, digest, provider },
        })),
      );
      return taken.map(({ snapshot }) => snapshot);
    } finally {
      for (const order of orders) this.#underWay.delete(order.snapshot);
    }
  }

  /**
   * Returns once these snapshots would survive a loss of power and the log says so. Those that are durable are left alone.
   *
   * @throws HoldpointError `invalid_checkpoint_state` where one is not in the index or not there, `deadline_exceeded`
   */
  async makeDurable(snapshotIds: readonly string[], signal?: AbortSignal): Promise<void> {
    const wanted = snapshotIds.filter((snapshotId) => !this.#recordOf(snapshotId).durable);
    await mapBounded(wanted, this.#lanes, async (snapshotId) => {
      requireTime(signal);
      await this.#provider.makeDurable(snapshotId);
    });
    requireTime(signal);
    await this.#record(wanted.map((snapshot) => ({ type: "snapshot.durable", data: { snapshot } })));
  }

  /**
   * Validates all references, forks all, and then deletes the sandboxes that are superseded.
   *
   * @throws HoldpointError `invalid_checkpoint_state` and others of `SandboxProvider.fork`; then no fork is left, and the
   *   superseded sandboxes are as they were
   */
  async restore(orders: readonly ForkOrder[], superseded: readonly string[] = []): Promise<void> {
    await mapBounded(orders, this.#lanes, ({ reference }) => this.#provider.validate(reference));
    const made: string[] = [];
    try {
      await mapBounded(orders, this.#lanes, async ({ reference, sandbox }) => {
        await this.#provider.fork(reference, sandbox);
        made.push(sandbox);
      });
    } catch (error) {
      await this.stop(made);
      throw error;
    }
    await this.stop(superseded);
  }

  /** Deletes sandboxes; their snapshots stay. Once more is no error. */
  async stop(sandboxes: readonly string[]): Promise<void> {
    await mapBounded(sandboxes, this.#lanes, (sandbox) => this.#provider.delete(sandbox));
  }

  /**
   * Frees every snapshot of the index that nothing references. Once more, or in several workers at once, is no error; what it
   * does not get to is an orphan.
   *
   * @param signal no further one is freed once it is aborted
   * @returns the ids of those that were freed
   */
  async release(isReferenced: IsReferenced, signal?: AbortSignal): Promise<readonly string[]> {
    const unreferenced = this.#unreferenced(isReferenced);
    await this.#record(unreferenced.map((snapshot) => ({ type: "snapshot.deleted", data: { snapshot } })));
    const freed = await mapBounded(unreferenced, this.#lanes, async (snapshot) => {
      if (signal?.aborted === true) return [];
      await this.#provider.deleteSnapshot(snapshot);
      return [snapshot];
    });
    return freed.flat();
  }

  /**
   * Compares disk and index, and with `apply` removes orphans, unreferenced snapshots and leftovers. Snapshots that a running
   * process may still be about to log are no orphans.
   */
  async collectGarbage(isReferenced: IsReferenced, { apply = false } = {}): Promise<GarbageReport> {
    const onDisk = await this.#provider.listSnapshots();
    const present = new Set(onDisk.map(({ snapshotId }) => snapshotId));
    const unreferenced = this.#unreferenced(isReferenced);
    const report: GarbageReport = {
      orphans: onDisk
        .filter((stored) => !stored.foreign && this.#isOrphan(stored.snapshotId))
        .map((stored) => stored.snapshotId),
      unreferenced,
      missing: [...this.#index.keys()].filter((id) => !present.has(id) && !unreferenced.includes(id)),
      leftovers: await this.#provider.listLeftovers(),
    };
    if (!apply) return report;
    await this.release(isReferenced);
    await mapBounded(report.orphans, this.#lanes, async (snapshotId) => {
      if (this.#isOrphan(snapshotId)) await this.#provider.deleteSnapshot(snapshotId);
    });
    await this.#provider.removeLeftovers();
    return report;
  }

  #isOrphan(snapshotId: string): boolean {
    return !this.#index.has(snapshotId) && !this.#underWay.has(snapshotId);
  }

  #unreferenced(isReferenced: IsReferenced): readonly string[] {
    return [...this.#index].filter(([, record]) => !isReferenced(record)).map(([snapshotId]) => snapshotId);
  }

  #recordOf(snapshotId: string): SnapshotRecord {
    const record = this.#index.get(snapshotId);
    if (record !== undefined) return record;
    throw new HoldpointError("invalid_checkpoint_state", `no snapshot ${snapshotId} is in the log`);
  }

  async #record(events: readonly SnapshotEvent[]): Promise<void> {
    if (events.length > 0) await this.#append(events);
    this.#index = foldSnapshots(this.#index, events);
  }
}

function requireTime(signal: AbortSignal | undefined): void {
  if (signal?.aborted !== true) return;
  throw new HoldpointError("deadline_exceeded", "the sandboxes were not done with in time", { cause: signal.reason });
}
