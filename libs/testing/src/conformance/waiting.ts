/** Waiting for what another process does, and saying what did not come. */
import { setTimeout as pause } from "node:timers/promises";

/** A promise of the contract that does not hold, in words. */
export class PromiseBroken extends Error {
  override readonly name = "PromiseBroken";
}

/** @throws PromiseBroken with `why`, unless `holds` */
export function must(holds: boolean, why: string): void {
  if (!holds) throw new PromiseBroken(why);
}

/** A bound against hanging, never a measure. */
export const patienceMs = 30_000;

/**
 * What `look` finds, once it finds something.
 *
 * @throws PromiseBroken where it does not within `patienceMs`
 */
export async function eventually<T>(
  what: string,
  look: () => Promise<T | undefined> | T | undefined,
): Promise<T> {
  const end = performance.now() + patienceMs;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (performance.now() > end) throw new PromiseBroken(`waited in vain for this: ${what}`);
    await pause(5);
  }
}
