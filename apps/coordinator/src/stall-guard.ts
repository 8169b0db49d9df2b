/**
 * Whether a request that is handed to this process now may have waited for long: because the process was stopped or busy, or the broker
 * or the network was.
 *
 * What the broker has for a connection comes in order, and the answer to a question on that connection too. So whatever is handed
 * over after a round trip has waited with the broker, and on the way, since the beginning of that round trip at most. While
 * none ends, as in a process that was stopped, that is ever longer ago.
 */
export interface StallGuardOptions {
  /** Milliseconds of a clock that goes on while the process is stopped. */
  readonly clock: () => number;
  /** Returns once the broker has answered; rejects where it cannot be asked. */
  readonly roundTrip: () => Promise<void>;
  /** How long a request may have waited, in milliseconds. */
  readonly patienceMs: number;
}

export class StallGuard {
  readonly #options: StallGuardOptions;
  /** When the latest round trip that has ended began. */
  #provenAtMs = Number.NEGATIVE_INFINITY;
  #asking: Promise<void> | undefined;

  constructor(options: StallGuardOptions) {
    this.#options = options;
  }

  /** Whether what is handed over now has waited no longer than it may. A clock that was set back says nothing. */
  isPrompt(): boolean {
    const { clock, patienceMs } = this.#options;
    const sinceMs = clock() - this.#provenAtMs;
    return sinceMs >= 0 && sinceMs <= patienceMs;
  }

  /** Makes a round trip, or waits for the one that is on its way. To be called several times in `patienceMs`. Never rejects. */
  async prove(): Promise<void> {
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  async #ask(): Promise<void> {
    const { clock, roundTrip } = this.#options;
    const beganAtMs = clock();
    try {
      await roundTrip();
      this.#provenAtMs = beganAtMs;
    } catch {
      // the connection broke, which its status says: nothing is proven, and it is asked again
    }
  }
}
