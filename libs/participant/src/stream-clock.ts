/** The stream's time between its messages: its latest timestamp, and what has passed here since that came. */
export class StreamClock {
  readonly #local: () => number;
  #latestMs = 0;
  #seenAtMs = 0;

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
    this.#seenAtMs = this.#local();
  }

  /** Epoch milliseconds; the local clock's until a message was seen. */
  nowMs(): number {
    return this.#latestMs === 0 ? this.#local() : this.#latestMs + Math.max(0, this.#local() - this.#seenAtMs);
  }
}
