/**
 * What may start now: the gate as the log tells it, the first seeds that were in flight when it closed, and what is in flight.
 *
 * 1. The set of first seeds in flight is fixed when admission closes: those episodes are restarts of this checkpoint, and
 *    neither waited for, nor parked, nor exported, until admission opens.
 * 2. A held request is not in flight. A first seed that is held is on its way here all the same: nobody else makes its session.
 */
import { isRefused, type ParticipantGate } from "@holdpoint/checkpoint";
import { HoldpointError } from "@holdpoint/errors";
import type { Blocker, Episode } from "@holdpoint/schemas";
import { keyOf } from "@holdpoint/session";
import { Latch } from "./latch.ts";

interface InFlight {
  readonly episode: Episode;
  readonly reason: string;
  readonly sinceMs: number;
  /** A first seed: there was no session when it came. */
  readonly firstSeed: boolean;
  readonly blocks: boolean;
}

interface Held {
  readonly episode: Episode;
  readonly isFirstSeed: () => boolean;
  readonly calledOff: AbortController;
}

export interface Admitted {
  readonly reason: string;
  readonly firstSeed?: boolean;
  /** Whether a prepare waits for it. */
  readonly blocks: boolean;
}

/** What becomes of a request that comes while admission is closed. */
export type WhileClosed = "held" | "refused" | "through";

/** How a request comes in, by whichever edge. */
export interface Entrance {
  readonly whileClosed: WhileClosed;
  /** Why a prepare waits for it while it is in flight; absent: it does not. */
  readonly blocks?: string;
  /** Whether it would be a first seed; asked once it may start. Default: it is not. */
  readonly isFirstSeed?: () => boolean;
  /** Aborted when nobody waits for it any more: a request that is held is given up then. */
  readonly signal?: AbortSignal;
}

export class Admission {
  /** Changes when admission opens or closes: many wait for that. */
  readonly gateLatch = new Latch();
  /** Changes with whatever a prepare may wait for: one waits for that. */
  readonly readiness = new Latch();
  readonly #gate: () => ParticipantGate;
  readonly #now: () => number;
  readonly #inFlight = new Set<InFlight>();
  readonly #held = new Set<Held>();
  readonly #excluded = new Map<string, Episode>();

  constructor(gate: () => ParticipantGate, now: () => number) {
    this.#gate = gate;
    this.#now = now;
  }

  get isClosed(): boolean {
    return this.#gate().closed !== undefined;
  }

  /** Admission has closed: fixes which first seeds are in flight. */
  close(): void {
    for (const { episode, firstSeed } of this.#inFlight) if (firstSeed) this.#excluded.set(keyOf(episode), episode);
    this.gateLatch.changed();
  }

  open(): void {
    this.#excluded.clear();
    this.gateLatch.changed();
  }

  /** Episodes that are restarts of the open checkpoint because their first seed was in flight. */
  get excluded(): readonly Episode[] {
    return [...this.#excluded.values()];
  }

  isExcluded(episode: Episode): boolean {
    return this.#excluded.has(keyOf(episode));
  }

  /** Whether the episode was retired or superseded. */
  isRefused(episode: Episode): boolean {
    return isRefused(this.#gate(), episode);
  }

  /** @throws HoldpointError `stale_attempt` where the episode was retired or superseded */
  check(episode: Episode): void {
    if (!this.isRefused(episode)) return;
    throw new HoldpointError("stale_attempt", `attempt ${episode.attempt} of ${episode.rollout} was retired`, {
      details: { ...episode },
    });
  }

  /** Returns when admission is open. */
  whenOpen(signal?: AbortSignal): Promise<void> {
    return this.gateLatch.until(() => !this.isClosed, signal);
  }

  /**
   * Runs `work` once it may start. What was held is looked at again: meanwhile the episode may have got a session, or been retired.
   *
   * @throws HoldpointError `admission_closed` for what is refused while admission is closed, `stale_attempt` where the episode was
   *   retired, or called off while the request was held; the signal's reason
   */
  async enter<T>(episode: Episode, entrance: Entrance, work: () => Promise<T>): Promise<T> {
    const { whileClosed, blocks, isFirstSeed = () => false, signal } = entrance;
    if (this.isClosed && whileClosed === "refused") throw closed();
    const isHeld = () => this.isClosed && whileClosed === "held";
    const held: Held = { episode, isFirstSeed, calledOff: new AbortController() };
    try {
      while (isHeld()) await this.#hold(held, signal);
    } finally {
      this.#held.delete(held); // in the turn in which it is in flight
    }
    signal?.throwIfAborted();
    this.check(episode);
    const admitted = { reason: blocks ?? "in flight", firstSeed: isFirstSeed(), blocks: blocks !== undefined };
    return this.run(episode, admitted, work);
  }

  /** Runs `work` as in flight for `episode`, so that a prepare knows of it. */
  async run<T>(episode: Episode, { reason, firstSeed = false, blocks }: Admitted, work: () => Promise<T>): Promise<T> {
    const entry = { episode, reason, firstSeed, blocks, sinceMs: this.#now() };
    this.#inFlight.add(entry);
    try {
      return await work();
    } finally {
      this.#inFlight.delete(entry);
      this.readiness.changed();
    }
  }

  /** Whether a first seed of the episode is in flight, or held. */
  isSeeding(episode: Episode): boolean {
    for (const entry of this.#inFlight) if (entry.firstSeed && isSame(entry.episode, episode)) return true;
    return this.#heldOf(episode).some(({ isFirstSeed }) => isFirstSeed());
  }

  /** The episode is over: what is held of it is answered `stale_attempt` instead of being done. */
  callOff(episode: Episode): void {
    const { rollout, attempt } = episode;
    const words = `attempt ${attempt} of ${rollout} was closed before this was begun`;
    const why = new HoldpointError("stale_attempt", words, { details: { rollout, attempt } });
    for (const { calledOff } of this.#heldOf(episode)) calledOff.abort(why);
  }

  /**
   * Returns when no seed, and nothing else that a prepare would wait for, is in flight for episodes that `concerns` names.
   *
   * @throws the signal's reason, when it is aborted meanwhile
   */
  settled(concerns: (episode: Episode) => boolean, signal: AbortSignal): Promise<void> {
    const isDone = () =>
      ![...this.#inFlight].some((entry) => (entry.blocks || entry.firstSeed) && concerns(entry.episode));
    return this.readiness.until(isDone, signal);
  }

  #hold(held: Held, signal: AbortSignal | undefined): Promise<void> {
    this.#held.add(held);
    const { calledOff } = held;
    return this.whenOpen(signal === undefined ? calledOff.signal : AbortSignal.any([signal, calledOff.signal]));
  }

  #heldOf(episode: Episode): readonly Held[] {
    if (this.#held.size === 0) return [];
    return [...this.#held].filter((held) => isSame(held.episode, episode));
  }

  /** What is in flight and holds up a prepare. */
  blockers(): Blocker[] {
    return [...this.#inFlight]
      .filter(({ episode, blocks, firstSeed }) => blocks && !firstSeed && !this.isExcluded(episode))
      .map(({ episode, reason, sinceMs }) => ({ ...episode, reason, sinceMs }));
  }
}

function isSame(one: Episode, other: Episode): boolean {
  return one.rollout === other.rollout && one.attempt === other.attempt;
}

function closed(): HoldpointError {
  return new HoldpointError("admission_closed", "a checkpoint is open: nothing new starts until it is resumed");
}
