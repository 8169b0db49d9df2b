/**
 * The stream's time between its messages.
 *
 * A message is seen some time after its timestamp, the longer the busier this machine is. So the local clock is held against the
 * message that was seen the soonest, of the last minute or so: an older one may be from before a clock was set.
 */
export class StreamClock {
  readonly #local: () => number;
  #latestMs = 0;
  /** The least that the local clock was ahead of a message when it was seen: in this half minute or more, and in the one before. */
  #aheadMs = Number.POSITIVE_INFINITY;
  #aheadBeforeMs = Number.POSITIVE_INFINITY;
  #sinceMs = 0;

  /** @param local milliseconds, of any clock that runs evenly */
  constructor(local: () => number) {
    this.#local = local;
  }

  /** The latest timestamp seen; 0 where none was. */
  get latestMs(): number {
    return this.#latestMs;
  }

  see(timeMs: number): void {
    if (timeMs < this.#latestMs) return;
    this.#latestMs = timeMs;
    const localMs = this.#local();
    if (Math.abs(localMs - this.#sinceMs) >= halfWindowMs) {
      this.#aheadBeforeMs = this.#aheadMs;
      this.#aheadMs = Number.POSITIVE_INFINITY;
      this.#sinceMs = localMs;
    }
    this.#aheadMs = Math.min(this.#aheadMs, localMs - timeMs);
  }

  /** Epoch milliseconds, never before the latest message; the local clock's until one was seen. */
  nowMs(): number {
    const localMs = this.#local();
    if (this.#latestMs === 0) return localMs;
    return Math.max(this.#latestMs, localMs - Math.min(this.#aheadMs, this.#aheadBeforeMs));
  }
}

const halfWindowMs = 30_000;
