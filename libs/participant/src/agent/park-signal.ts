/** Whether a session is asked to come to a boundary: for code outside of this process, which does not do so by itself. */
import type { Episode } from "@holdpoint/schemas";
import { isCapturable } from "../preparing.ts";
import type { AgentParticipant } from "./agent-state.ts";

export class ParkSignal {
  readonly #agent: AgentParticipant;
  readonly #episode: Episode;
  readonly #over: AbortSignal;
  #isStopped = false;
  #next: Promise<void> | undefined;

  /** @param over aborted when nobody waits any more */
  constructor(agent: AgentParticipant, episode: Episode, over: AbortSignal) {
    this.#agent = agent;
    this.#episode = episode;
    this.#over = over;
  }

  /** While admission is closed, and once the session is retired or closed. Never for a restart. */
  get isRaised(): boolean {
    return this.#isStopped || (this.#agent.admission.isClosed && this.mayPark);
  }

  /** Whether a checkpoint can hold the session: no other parks. */
  get mayPark(): boolean {
    const session = this.#agent.sessions.get(this.#episode);
    return session !== undefined && isCapturable(this.#agent, session);
  }

  /** The session is retired or closed. */
  stop(): void {
    this.#isStopped ||= this.mayPark;
  }

  /** Resolves when it is raised, at once where it is; never rejects. */
  get raised(): Promise<void> {
    if (this.isRaised) return Promise.resolve();
    this.#next ??= this.#whenRaised();
    return this.#next;
  }

  /** One wait at a time: who asks in every turn must not leave a waiter behind each time. */
  #whenRaised(): Promise<void> {
    return new Promise((resolve) => {
      const raised = () => {
        this.#next = undefined;
        resolve();
      };
      // Over: nobody waits for it.
      this.#agent.admission.gateLatch.until(() => this.isRaised, this.#over).then(raised, () => {});
    });
  }
}
