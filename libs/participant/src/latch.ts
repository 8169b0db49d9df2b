/** Waiting for a condition that events bring about: no polling, and never a wait that nothing can end. */
export class Latch {
  readonly #waiters = new Set<() => void>();

  /** Tells every waiter to look again. */
  changed(): void {
    for (const wake of this.#waiters) wake();
  }

  /** Returns once `holds()`; looks now, and after each `changed()`. Rejects with the signal's reason when it is aborted. */
  async until(holds: () => boolean, signal?: AbortSignal): Promise<void> {
    while (!holds()) {
      signal?.throwIfAborted();
      await this.#next(signal);
    }
  }

  #next(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        this.#waiters.delete(wake);
        signal?.removeEventListener("abort", wake);
        resolve();
      };
      this.#waiters.add(wake);
      signal?.addEventListener("abort", wake, { once: true });
    });
  }
}
