/**
 * What a checkpoint needs of the sandboxes: snapshots at the capture, durable at the commit, forks at a restore, and what may
 * be freed at a release.
 *
 * 1. Every capture takes a fresh snapshot of every sandbox in scope, also of one that nobody has touched since the last: a
 *    snapshot that went missing, or something that a stray process wrote, then spoils one checkpoint and not all that follow.
 * 2. A session's state names the snapshot that the checkpoint fixed with it, so that the log alone says what a checkpoint
 *    needs; what no held session names is free.
 */
import { HoldpointError } from "@holdpoint/errors";
import { pendingSessions, type RoleHooks } from "@holdpoint/participant";
import { mapBounded, type SnapshotReference } from "@holdpoint/sandbox";
import type { Episode, ResourcesEvent } from "@holdpoint/schemas";
import type { Session } from "@holdpoint/session";
import type { RepairSession } from "./repair-session.ts";
import { newId, referencedNow, type Workshop } from "./workshop.ts";

type Hooks = RoleHooks<RepairSession, ResourcesEvent>;

/** Snapshots that are read at once. */
const lanes = 16;

export class Checkpointing {
  readonly #workshop: Workshop;
  /** Sandboxes made for a restore that is not installed yet. */
  readonly #forks = new Map<string, Episode>();

  /** Knows also what the process before this one forked for a restore that is under way. */
  constructor(workshop: Workshop) {
    this.#workshop = workshop;
    for (const { rollout, attempt, state } of pendingSessions(workshop.participant)) {
      if (state.sandbox !== null) this.#forks.set(state.sandbox, { rollout, attempt });
    }
  }

  get hooks(): Pick<Hooks, "capture" | "commit" | "restore" | "release" | "opened"> {
    return {
      capture: (sessions, checkpointId, signal) => this.#capture(sessions, checkpointId, signal),
      commit: (checkpointId, _options, signal) => this.#commit(checkpointId, signal),
      restore: (sessions) => this.#restore(sessions),
      release: (_released, signal) => this.#release(signal),
      opened: () => this.#opened(),
    };
  }

  /** One that fails or comes late fails all; the sandboxes run on. */
  async #capture(
    sessions: readonly Session<RepairSession>[],
    checkpointId: string,
    signal: AbortSignal,
  ): Promise<readonly ResourcesEvent[]> {
    const { checkpointer, provider } = this.#workshop;
    const orders = sessions.flatMap(({ rollout, attempt, state: { sandbox } }) =>
      sandbox === null
        ? []
        : [{ rollout, attempt, sandbox, checkpointId, snapshot: newId("cut", { rollout, attempt }) }],
    );
    try {
      await checkpointer.snapshot(orders, signal);
    } catch (error) {
      await Promise.allSettled(orders.map(({ snapshot }) => provider.deleteSnapshot(snapshot)));
      throw error;
    }
    return []; // the checkpointer has appended them
  }

  /** There is nothing to stop: between two calls nothing runs in a sandbox of ours. */
  async #commit(checkpointId: string, signal: AbortSignal): Promise<readonly ResourcesEvent[]> {
    const { checkpointer, provider, participant } = this.#workshop;
    const references = (participant.sessions.fixedBy(checkpointId) ?? [])
      .filter(({ state }) => state.sandbox !== null)
      .map((session) => snapshotFor(session, checkpointId));
    await checkpointer.makeDurable(
      references.map(({ snapshotId }) => snapshotId),
      signal,
    );
    await mapBounded(references, lanes, (reference) => {
      signal.throwIfAborted();
      return provider.validate(reference);
    });
    return [];
  }

  /** Forks, whatever the live sandboxes look like; all or none. Those that come too late are freed when admission opens. */
  async #restore(sessions: readonly Session<RepairSession>[]): Promise<readonly ResourcesEvent[]> {
    const { checkpointer } = this.#workshop;
    const orders = sessions
      .filter(({ state }) => state.sandbox !== null)
      .map((session) => ({
        episode: { rollout: session.rollout, attempt: session.attempt },
        reference: snapshotFor(session, session.from?.source ?? ""),
        sandbox: newId("box", session),
      }));
    const earlier = [...this.#forks.keys()]; // of the same restore, which an earlier process could not answer for
    for (const { sandbox, episode } of orders) this.#forks.set(sandbox, episode);
    await checkpointer.restore(orders, earlier);
    return orders.map(({ episode, reference, sandbox }) => ({
      type: "sandbox.lent",
      data: { ...episode, sandbox, from: reference.snapshotId },
    }));
  }

  /** What is kept is known from the log, where the release stands before anybody is asked to free anything. */
  async #release(signal: AbortSignal): Promise<readonly ResourcesEvent[]> {
    await this.#workshop.checkpointer.release(referencedNow(this.#workshop), signal);
    return [];
  }

  /** A restore is over: forks of one that was not installed are nobody's. */
  #opened(): void {
    const { participant, checkpointer } = this.#workshop;
    const left = [...this.#forks].filter(
      ([sandbox, episode]) => participant.sessions.get(episode)?.state.sandbox !== sandbox,
    );
    this.#forks.clear();
    checkpointer.stop(left.map(([sandbox]) => sandbox)).catch((error: unknown) => {
      participant.options.trouble("forks of a failed restore were not deleted", error);
    });
  }
}

/** @throws HoldpointError `invalid_checkpoint_state` where the session has no snapshot of this checkpoint */
function snapshotFor({ rollout, attempt, state }: Session<RepairSession>, checkpointId: string): SnapshotReference {
  const { snapshot } = state;
  if (snapshot?.checkpointId === checkpointId) return snapshot;
  throw new HoldpointError(
    "invalid_checkpoint_state",
    `the log names no snapshot of ${rollout} for checkpoint ${checkpointId}`,
    { details: { rollout, attempt, checkpointId } },
  );
}
