/**
 * The start of the process: what the log says is live is compared with what is there (L9).
 *
 * 1. A call that did not end is rolled back; a session whose sandbox is gone is marked as a restart.
 * 2. What no session and no checkpoint names was left by a process that was killed, and is freed. That is looked for before
 *    anything is served, and appended before it is done: a process that has a successor by then frees nothing of its.
 * 3. Nothing of it delays the start: appends may have to wait until an open checkpoint lets them.
 */
import { HoldpointError } from "@holdpoint/errors";
import { liveSessions, pendingSessions } from "@holdpoint/participant";
import type { Blocker, ResourcesEvent } from "@holdpoint/schemas";
import { keyOf, type Session } from "@holdpoint/session";
import type { RepairSession } from "./repair-session.ts";
import { markLost, rollBack } from "./rolling-back.ts";
import { recordAll, referencedNow, type Workshop } from "./workshop.ts";

interface Garbage {
  readonly sandboxes: readonly string[];
  readonly snapshots: readonly string[];
}

export class Recovery {
  readonly #workshop: Workshop;
  readonly #mending = new Map<string, Blocker>();

  constructor(workshop: Workshop) {
    this.#workshop = workshop;
  }

  /** Sessions that are not yet what the log will say of them. */
  get blockers(): readonly Blocker[] {
    return [...this.#mending.values()];
  }

  /** To be called before anything is served; most of it goes on afterwards. */
  async start(): Promise<void> {
    const { provider, participant } = this.#workshop;
    const present = await provider.list();
    const garbage = await this.#garbage(present);
    for (const session of liveSessions(this.#workshop.participant)) {
      if (isUnsound(session.state, new Set(present))) this.#mend(session);
    }
    this.#sweep(garbage).catch((error: unknown) => participant.options.trouble("what was left is still there", error));
  }

  async #garbage(present: readonly string[]): Promise<Garbage> {
    const { participant, checkpointer } = this.#workshop;
    const sessions = [...liveSessions(this.#workshop.participant), ...pendingSessions(this.#workshop.participant)];
    const named = new Set(sessions.map(({ state }) => state.sandbox));
    const report = await checkpointer.collectGarbage(referencedNow(this.#workshop));
    for (const snapshot of report.missing) participant.options.trouble(`snapshot ${snapshot} is missing`);
    return { sandboxes: present.filter((sandbox) => !named.has(sandbox)), snapshots: report.orphans };
  }

  async #sweep({ sandboxes, snapshots }: Garbage): Promise<void> {
    const { provider, participant, checkpointer } = this.#workshop;
    await provider.removeLeftovers();
    const events: ResourcesEvent[] = [
      ...sandboxes.map((sandbox) => ({ type: "sandbox.deleted" as const, data: { sandbox } })),
      ...snapshots.map((snapshot) => ({ type: "snapshot.deleted" as const, data: { snapshot } })),
    ];
    if (events.length === 0) return;
    await recordAll(participant, events);
    await checkpointer.stop(sandboxes);
    for (const snapshot of snapshots) await provider.deleteSnapshot(snapshot);
  }

  #mend(session: Session<RepairSession>): void {
    const { benches, participant } = this.#workshop;
    const { rollout, attempt, state } = session;
    const key = keyOf(session);
    const reason = state.started === null ? "its sandbox is gone" : "a call that did not end is rolled back";
    this.#mending.set(key, { rollout, attempt, reason, sinceMs: participant.clock.nowMs() });
    benches
      .of(session)
      .run(() => this.#mended({ rollout, attempt }, state))
      .catch((error: unknown) => participant.options.trouble(`${rollout} was not recovered`, error))
      .finally(() => {
        this.#mending.delete(key);
        participant.changed();
      });
  }

  async #mended(episode: { readonly rollout: string; readonly attempt: number }, state: RepairSession): Promise<void> {
    if ((state.started?.snapshot ?? null) === null) {
      return markLost(this.#workshop, episode, `its sandbox ${state.sandbox} is gone`);
    }
    await rollBack(this.#workshop, episode).catch((error: unknown) => {
      if (!HoldpointError.is(error, "invalid_checkpoint_state")) throw error; // that is in the log by now
    });
  }
}

function isUnsound({ sandbox, started, lost }: RepairSession, present: ReadonlySet<string>): boolean {
  if (sandbox === null || lost !== null) return false;
  return (started?.snapshot ?? null) !== null || !present.has(sandbox);
}
