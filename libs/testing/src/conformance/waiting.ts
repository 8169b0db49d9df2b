/** Waiting for what another process does, and saying what did not come. */
import { setTimeout as pause } from "node:timers/promises";

/** A promise of the contract that does not hold, in words. */
class PromiseBroken extends Error {
  override readonly name = "PromiseBroken";
}

/** @throws PromiseBroken with `why`, unless `holds` */
export function must(holds: boolean, why: string): void {
  if (!holds) throw new PromiseBroken(why);
}

/** How long is waited for what has to come. */
export class Patience {
  readonly #ms: number;

  /** @param ms a bound against hanging, never a measure */
  constructor(ms: number) {
    this.#ms = ms;
  }

  /**
   * What `look` finds, once it finds something.
   *
   * @throws PromiseBroken where it does not in time
   */
  async until<T>(what: string, look: () => Promise<T | undefined> | T | undefined): Promise<T> {
    const end = performance.now() + this.#ms;
    for (;;) {
      const found = await look();
      if (found !== undefined) return found;
      if (performance.now() > end) throw new PromiseBroken(`waited in vain for this: ${what}`);
      await pause(5);
    }
  }
}
