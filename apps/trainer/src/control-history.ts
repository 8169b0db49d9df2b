/**
 * What the control subject says that concerns a trainer: which attempt of each rollout counts, where its history comes from,
 * and which checkpoints there are.
 *
 * An attempt counts while it was neither retired nor superseded by a restore. All that is kept of this only rises, so that it
 * makes no difference whether a result or what voids it is seen first. What is folded here is never abandoned (L6).
 */
import { type Branch, type Path, pathTo, type Recorded } from "@holdpoint/eventsourcing";
import type { Assignment, ControlEvent, Episode } from "@holdpoint/schemas";

/** A checkpoint that was committed and not released. */
export interface CommittedCheckpoint {
  readonly checkpointId: string;
  /** The sequence up to which it holds. */
  readonly cut: number;
  readonly scope: readonly Episode[];
}

interface Restore {
  readonly assignments: readonly Assignment[];
  readonly cut: number;
}

type DataByType = { [E in ControlEvent as E["type"]]: E["data"] };

export class ControlHistory {
  readonly #stream: string;
  /** The lowest attempt of a rollout that is not void. */
  readonly #floors = new Map<string, number>();
  readonly #branches = new Map<string, Branch[]>();
  /** The latest attempt that goes on from another. */
  readonly #continued = new Map<string, number>();
  readonly #restores = new Map<string, Restore>();
  readonly #committed = new Map<string, CommittedCheckpoint>();
  readonly #stale = new Set<string>();
  readonly #numbers = new Map<string, number>();
  #lastResumed: string | undefined;
  #open: string | undefined;

  constructor(stream: string) {
    this.#stream = stream;
  }

  apply({ event }: Recorded<ControlEvent>): void {
    switch (event.type) {
      case "rollouts.marked":
        for (const { rollout, attempt } of event.data.rollouts) this.#raise(rollout, attempt + 1);
        break;
      case "checkpoint.opened":
        this.#count(event.data.checkpointId);
        this.#open = event.data.checkpointId;
        break;
      case "checkpoint.resumed":
        this.#resumed(event.data.checkpointId);
        break;
      case "checkpoint.committed":
        this.#commit(event.data);
        break;
      case "checkpoint.releasing":
        for (const dropped of event.data.dropped) this.#committed.delete(dropped);
        break;
      default:
        this.#restoring(event);
    }
  }

  /** The attempt of the rollout that counts, whether it was dispatched or not. */
  attemptOf(rollout: string): number {
    return this.#floors.get(rollout) ?? 0;
  }

  /** Whether the attempt that counts is the continuation of another. */
  isContinued(rollout: string): boolean {
    return this.#continued.get(rollout) === this.attemptOf(rollout);
  }

  /** Where the history of an attempt comes from. */
  pathOf({ rollout, attempt }: Episode): Path {
    return pathTo(this.#branches.get(rollout) ?? [], attempt);
  }

  /** Checkpoints that can be restored, oldest first. */
  get committed(): readonly CommittedCheckpoint[] {
    return [...this.#committed.values()];
  }

  /** The id whose first resume is the latest; undefined before there was one. */
  get lastResumed(): string | undefined {
    return this.#lastResumed;
  }

  /** The checkpoint or restore that is open. */
  get open(): string | undefined {
    return this.#open;
  }

  /** Whether the id is over. */
  isResumed(checkpointId: string): boolean {
    return this.#stale.has(checkpointId);
  }

  /** One above every number that an id of this prefix has ever had. */
  nextNumber(prefix: string): number {
    return (this.#numbers.get(prefix) ?? 0) + 1;
  }

  #restoring(event: ControlEvent): void {
    switch (event.type) {
      case "restore.started": {
        const { checkpointId, assignments, cut } = event.data;
        this.#restores.set(checkpointId, { assignments, cut: cut[this.#stream] ?? 0 });
        break;
      }
      case "restore.installed":
        this.#install(this.#restores.get(event.data.checkpointId));
        break;
      case "restore.failed":
        for (const { rollout, to } of this.#restores.get(event.data.checkpointId)?.assignments ?? []) {
          this.#raise(rollout, to + 1);
        }
        break;
      default:
    }
  }

  #install(restore: Restore | undefined): void {
    for (const { rollout, from, to } of restore?.assignments ?? []) {
      this.#raise(rollout, to);
      const branch = { attempt: to, from: { attempt: from, cut: restore?.cut ?? 0 } };
      this.#branches.set(rollout, [...(this.#branches.get(rollout) ?? []), branch]);
      this.#continued.set(rollout, to);
    }
  }

  #commit({ checkpointId, cut, scope }: DataByType["checkpoint.committed"]): void {
    this.#committed.set(checkpointId, { checkpointId, cut: cut[this.#stream] ?? 0, scope });
  }

  #resumed(checkpointId: string): void {
    this.#count(checkpointId);
    if (this.#open === checkpointId) this.#open = undefined;
    if (this.#stale.has(checkpointId)) return;
    this.#stale.add(checkpointId);
    this.#lastResumed = checkpointId;
  }

  #raise(rollout: string, floor: number): void {
    this.#floors.set(rollout, Math.max(floor, this.attemptOf(rollout)));
  }

  #count(checkpointId: string): void {
    const [, prefix = "", digits = ""] = /^([a-z-]+)(\d{1,15})$/.exec(checkpointId) ?? [];
    this.#numbers.set(prefix, Math.max(Number(digits), this.#numbers.get(prefix) ?? 0));
  }
}
