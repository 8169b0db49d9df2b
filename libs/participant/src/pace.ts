/** When the work of sessions may go on: parking at boundaries, and waiting while a checkpoint has captured what they are. */
import type { Episode } from "@holdpoint/schemas";
import { keyOf, type SessionEvent } from "@holdpoint/session";
import type { Participant } from "./participant.ts";
import { isCapturable } from "./preparing.ts";
import type { LogEvent } from "./role-spec.ts";

export class Pace<State, Own extends SessionEvent> {
  readonly #participant: Participant<State, Own>;
  /** Appends, whether the session is held or not. */
  readonly #append: (events: readonly LogEvent<Own>[]) => Promise<number>;
  /** Sessions that are being captured, or that the open checkpoint has captured. */
  readonly #held = new Set<string>();

  constructor(participant: Participant<State, Own>, append: (events: readonly LogEvent<Own>[]) => Promise<number>) {
    this.#participant = participant;
    this.#append = append;
  }

  hold(episodes: readonly Episode[]): void {
    for (const episode of episodes) this.#held.add(keyOf(episode));
  }

  letGo(): void {
    this.#held.clear();
    this.#participant.admission.gateLatch.changed();
  }

  /**
   * Runs `append` at once, or when none of the sessions that `events` are about is held any more: in the turn in which that was
   * seen, so that no capture comes between.
   */
  async going(events: readonly LogEvent<Own>[], append: () => Promise<number>): Promise<void> {
    const { admission } = this.#participant;
    const episodes = events.map(episodeOf).filter((episode) => episode !== undefined);
    const isHeld = () => this.#held.size > 0 && episodes.some((episode) => this.#held.has(keyOf(episode)));
    while (isHeld()) await admission.gateLatch.until(() => !isHeld());
    for (const episode of episodes) admission.check(episode);
    await append();
  }

  /** Parks the session for as long as it has to, and as often. */
  async boundary({ rollout, attempt }: Episode, signal: AbortSignal | undefined): Promise<void> {
    const episode = { rollout, attempt };
    const { admission } = this.#participant;
    admission.check(episode);
    while (this.#mustPark(episode)) {
      const checkpointId = this.#participant.gate.closed?.checkpointId;
      if (checkpointId !== undefined && !this.#isParked(episode)) {
        await this.#append([{ type: "session.parked", data: { ...episode, checkpointId } }]);
      }
      await admission.gateLatch.until(() => this.#isOver(checkpointId), signal);
      admission.check(episode);
      const data = { ...episode, ...(checkpointId !== undefined && { checkpointId }) };
      await this.#append([{ type: "session.unparked", data }]);
    }
    signal?.throwIfAborted();
  }

  #mustPark(episode: Episode): boolean {
    const { sessions, admission } = this.#participant;
    const session = sessions.get(episode);
    if (session === undefined || !isCapturable(this.#participant, session)) return false;
    return admission.isClosed || session.status.work === "parked";
  }

  #isOver(checkpointId: string | undefined): boolean {
    const { closed } = this.#participant.gate;
    return closed === undefined || closed.checkpointId !== checkpointId;
  }

  #isParked(episode: Episode): boolean {
    return this.#participant.sessions.get(episode)?.status.work === "parked";
  }
}

/** The episode that an event is about; undefined where it is about none. */
function episodeOf({ data }: { readonly data: object }): Episode | undefined {
  const { rollout, attempt }: { rollout?: unknown; attempt?: unknown } = data;
  return typeof rollout === "string" && typeof attempt === "number" ? { rollout, attempt } : undefined;
}
