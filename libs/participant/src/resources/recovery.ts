/**
 * The start of the process (L9): a session whose last call did not end, and may not simply run again, is a restart.
 *
 * To be begun before anything is served: whatever is asked of such a session comes after it. It delays nothing else, since an append
 * may have to wait until an open checkpoint lets it.
 */
import type { Blocker } from "@holdpoint/schemas";
import { keyOf } from "@holdpoint/session";
import { type Desk, markLost, whyLost } from "./desk.ts";
import { liveSessions } from "../live-sessions.ts";

export class Recovery {
  readonly #desk: Desk;
  readonly #marking = new Map<string, Blocker>();

  constructor(desk: Desk) {
    this.#desk = desk;
  }

  /** Sessions that are not yet what the log will say of them. */
  get blockers(): readonly Blocker[] {
    return [...this.#marking.values()];
  }

  start(): void {
    const { participant, benches } = this.#desk;
    for (const { rollout, attempt, state, status } of liveSessions(participant)) {
      const why = whyLost(this.#desk, state);
      if (why === undefined || status.restart) continue;
      const key = keyOf({ rollout, attempt });
      this.#marking.set(key, { rollout, attempt, reason: why, sinceMs: participant.clock.nowMs() });
      benches
        .of({ rollout, attempt })
        .run(() => markLost(this.#desk, { rollout, attempt }, why))
        .catch((error: unknown) => participant.options.trouble(`${rollout} was not marked as a restart`, error))
        .finally(() => {
          this.#marking.delete(key);
          participant.changed();
        });
    }
  }
}
