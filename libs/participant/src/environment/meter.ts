/** The meters of time budgets: what each episode has used up, and who is told when it is used up. */
import { chargeAt, type EpisodeState, parkedSpans, remainingMs } from "@holdpoint/episode";
import type { EnvironmentEvent, Episode } from "@holdpoint/schemas";
import type { Session } from "@holdpoint/session";
import type { Environment } from "./environment.ts";
import { Parking } from "./parking.ts";

/** The longest that a timer waits before the charge is looked at again; also Node's own limit is far above. */
const longestWaitMs = 3_600_000;

export class Meter {
  readonly #participant: Environment;
  readonly #parking: Parking;
  /** Sequence from which the open checkpoint, or the one before it, matters. */
  #closedAt = 0;
  /** Settles when all is read that the sessions did while admission was closed last: before, nobody is charged. */
  #settled: Promise<void> = Promise.resolve();

  constructor(participant: Environment) {
    this.#participant = participant;
    const { log, run } = participant.options;
    this.#parking = new Parking({ log, run, isLive: (episode) => participant.sessions.get(episode) !== undefined });
  }

  /** Admission has closed with the ask at `sequence`. */
  closed(sequence: number): void {
    this.#closedAt = sequence;
  }

  /** Admission is open again, whatever became of the checkpoint. */
  opened(): void {
    this.#settled = this.#settle(this.#participant.clock.nowMs()).catch((error: unknown) => {
      this.#participant.options.trouble("when sessions were parked could not be read, and is charged", error);
    });
  }

  async #settle(openedAtMs: number): Promise<void> {
    await this.#parking.readFrom(Math.max(1, this.#closedAt));
    this.#parking.letGo(openedAtMs);
  }

  /** After a crash: reads what the processes before this one have seen, from the oldest sample that matters. */
  async recover(): Promise<void> {
    const sequences = this.#participant.sessions.all().map(({ sequence }) => sequence);
    if (sequences.length > 0) await this.#parking.readFrom(Math.min(...sequences));
  }

  /** The charge of each session at the cut that is being made, as events. */
  async sample(sessions: readonly Session<EpisodeState>[]): Promise<readonly EnvironmentEvent[]> {
    await this.#settled;
    await this.#parking.readFrom(Math.max(1, this.#closedAt));
    const nowMs = this.#participant.clock.nowMs();
    return sessions.map(({ rollout, attempt, state, claimed }) => {
      // Nobody works on what was restored until it is claimed.
      const chargedMs = claimed ? this.#charge({ rollout, attempt }, state, nowMs) : state.chargedMs;
      return { type: "episode.charged", data: { rollout, attempt, chargedMs } };
    });
  }

  /** What the episode has used up by now. */
  async chargeOf(episode: Episode, state: EpisodeState): Promise<number> {
    await this.#settled;
    return this.#charge(episode, state, this.#participant.clock.nowMs());
  }

  /**
   * Aborts `controller` once the episode's budget is used up. While a checkpoint is open nobody is late: the charge is looked
   * at again when admission opens.
   *
   * @returns how to stop watching
   */
  watch(episode: Episode, controller: AbortController): () => void {
    let timer: NodeJS.Timeout | undefined;
    let stopped = false;
    const look = async (): Promise<void> => {
      // Aborted for another reason: nobody waits for the budget any more.
      await this.#participant.admission.whenOpen(controller.signal).catch(() => {});
      await this.#settled;
      const state = this.#participant.sessions.get(episode)?.state;
      if (stopped || controller.signal.aborted || state === undefined) return;
      const leftMs = remainingMs(state.budgetMs, this.#charge(episode, state, this.#participant.clock.nowMs()));
      if (leftMs <= 0) controller.abort(new BudgetSpent());
      else if (Number.isFinite(leftMs)) timer = setTimeout(() => void look(), Math.min(leftMs, longestWaitMs));
    };
    void look();
    return () => {
      stopped = true;
      clearTimeout(timer);
    };
  }

  /** The episode is over here: nobody asks for its charge any more. */
  forget(episode: Episode): void {
    this.#parking.forget(episode);
  }

  #charge(episode: Episode, state: EpisodeState, nowMs: number): number {
    const { role, instance } = { role: "environment" as const, instance: this.#participant.options.instance };
    const used = [
      { role, instance },
      { role: "agent" as const, instance: state.agent },
      { role: "resources" as const, instance: state.resources },
      ...this.#participant.directory.of("model"),
    ];
    const down = this.#participant.directory.downtimesOf(used);
    const parked = [...this.#parking.spansOf(episode, nowMs), ...parkedSpans(state, nowMs)];
    return Math.round(chargeAt(state, nowMs, [...down, ...parked, ...this.#participant.outages]));
  }
}

/** Why a driver stops when an episode's time is used up. */
export class BudgetSpent extends Error {
  override readonly name = "BudgetSpent";
}
