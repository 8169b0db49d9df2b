/** Which attempts of each rollout are there: looked up with every first seed, where a walk through all sessions is too much. */
import type { Episode } from "@holdpoint/schemas";

export class RolloutIndex {
  readonly #attempts = new Map<string, readonly number[]>();

  /** Of those that are there, in the order in which they came. */
  of(rollout: string): readonly number[] {
    return this.#attempts.get(rollout) ?? [];
  }

  add({ rollout, attempt }: Episode): void {
    const attempts = this.of(rollout);
    if (!attempts.includes(attempt)) this.#attempts.set(rollout, [...attempts, attempt]);
  }

  remove({ rollout, attempt }: Episode): void {
    const left = this.of(rollout).filter((other) => other !== attempt);
    if (left.length === 0) this.#attempts.delete(rollout);
    else this.#attempts.set(rollout, left);
  }
}
