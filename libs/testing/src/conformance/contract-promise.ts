/** A promise of the contract, and how what was seen is compared. */
import type { Episode, Mode } from "@holdpoint/schemas";
import type { Examination } from "./examination.ts";

export interface ContractPromise {
  /** A sentence that can be false. */
  readonly says: string;
  /** Of which modes. Default: all. */
  readonly of?: readonly Mode[];
  /** @throws PromiseBroken where it is */
  readonly check: (examination: Examination) => Promise<void>;
}

/** The modes whose sessions are in checkpoints. */
export const held: readonly Mode[] = ["exported", "stateless"];

export function isSame(one: readonly string[], other: readonly string[]): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** Whether the data of an event is about the episode. */
export function isAbout(data: object, { rollout, attempt }: Episode): boolean {
  const about: { rollout?: unknown; attempt?: unknown } = data;
  return about.rollout === rollout && about.attempt === attempt;
}
