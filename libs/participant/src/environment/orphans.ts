/**
 * Episodes whose agent or resources server is gone for good: nobody holds their session any more, so no checkpoint may say that it
 * goes on. They are marked as restarts, and until the mark is in the log a prepare waits.
 */
import type { EpisodeState } from "@holdpoint/episode";
import type { Blocker } from "@holdpoint/schemas";
import type { Session } from "@holdpoint/session";
import type { Environment } from "./environment.ts";

/** Before an episode is seeded nobody holds anything of it: whoever comes will do. */
function lostBy({ directory }: Environment, { agent, resources, stage }: EpisodeState): string | undefined {
  if (stage === "none" || stage === "seed") return undefined;
  if (directory.find("agent", agent) === undefined) return `agent ${agent} is not expected any more`;
  if (directory.find("resources", resources) === undefined) return `resources ${resources} is not expected any more`;
  return undefined;
}

export class Orphans {
  readonly #participant: Environment;
  /** Episodes whose mark is on its way, by rollout. */
  readonly #marking = new Map<string, Session<EpisodeState>>();

  constructor(participant: Environment) {
    this.#participant = participant;
    participant.directory.onGone(() => this.look());
  }

  /** What a prepare waits for. */
  blockers(): readonly Blocker[] {
    const sinceMs = this.#participant.clock.nowMs();
    return [...this.#marking.values()].map(({ rollout, attempt }) => {
      return { rollout, attempt, reason: "its participant is gone", sinceMs };
    });
  }

  /** Marks what was lost and is not marked yet. */
  look(): void {
    for (const session of this.#participant.sessions.live()) {
      const why = session.status.restart ? undefined : lostBy(this.#participant, session.state);
      if (why !== undefined && !this.#marking.has(session.rollout)) void this.#mark(session, why);
    }
  }

  async #mark(session: Session<EpisodeState>, why: string): Promise<void> {
    const { rollout, attempt } = session;
    this.#marking.set(rollout, session);
    try {
      await this.#participant.record({ type: "session.restart_marked", data: { rollout, attempt, why } });
      this.#marking.delete(rollout);
      this.#participant.changed();
    } catch (error) {
      this.#participant.options.trouble(`${rollout} was not marked as a restart`, error); // and still blocks
    }
  }
}
