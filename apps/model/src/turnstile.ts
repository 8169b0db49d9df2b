import { setImmediate as turn } from "node:timers/promises";

/** Runs computations one after the other, and lets the event loop turn before each: a policy's reply takes milliseconds. */
export class Turnstile {
  #last: Promise<unknown> = Promise.resolve();

  run<T>(work: () => T): Promise<T> {
    const result = this.#last.then(() => turn()).then(work);
    this.#last = result.catch(() => undefined);
    return result;
  }
}
