/**
 * Who may write in a sandbox while it is looked at.
 *
 * Writers pass, many at once; whoever closes the gate waits for those inside, and keeps the others out until it opens.
 * Closings are counted: the gate is open when each has opened it.
 */
export class Gate {
  #inside = 0;
  #closings = 0;
  #waiting: (() => void)[] = [];

  /** Runs `work` while the gate is open; waits for that first. */
  async pass<Result>(work: () => Promise<Result>): Promise<Result> {
    while (this.#closings > 0) await this.#change();
    this.#inside += 1;
    try {
      return await work();
    } finally {
      this.#inside -= 1;
      this.#wake();
    }
  }

  /** Keeps writers out, and returns when none is inside. */
  async close(): Promise<void> {
    this.#closings += 1;
    while (this.#inside > 0) await this.#change();
  }

  /** Takes one closing back. */
  open(): void {
    this.#closings -= 1;
    this.#wake();
  }

  #change(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) wake();
  }
}
