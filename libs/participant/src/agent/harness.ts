/** A harness that runs outside of this process, as an agent drives it. */
import { HoldpointError } from "@holdpoint/errors";
import type { Json, Mode } from "@holdpoint/schemas";
import * as z from "zod";

/** Pausing and continuing are harmless when it stands, or goes on, already. */
export interface Harness {
  /** By which a process after this one finds it again: at most 512 characters, and no secret. */
  readonly handle: string;
  /** Its output, when it has come to its end. */
  readonly done: Promise<string>;
  /** Resolves when it really stands. */
  pause(): Promise<void>;
  continue(): Promise<void>;
  /** What another harness can go on from; asked while it stands. Only in mode `exported`. */
  state?(): Json | Promise<Json>;
  /**
   * Ends it, and waits until it has ended. Called once whenever its activation is over, also where it has come to its end by itself:
   * harmless then. Waited for as long as a close waits, ten seconds by default.
   */
  stop(): Promise<void>;
}

const member = z.custom((value) => typeof value === "function", { error: "expected a function" });

const Shape = z.looseObject({
  handle: z.string().min(1).max(512),
  done: z.custom((value) => value instanceof Promise, { error: "expected a promise of the output" }),
  pause: member,
  continue: member,
  stop: member,
});
const Exported = Shape.extend({ state: member });

/** Whether it can be stopped, whatever else is wrong with it. */
export function isStoppable(given: unknown): boolean {
  return z.looseObject({ stop: member }).safeParse(given).success;
}

/**
 * Refuses what is no harness.
 *
 * @param hook which gave it
 * @throws HoldpointError `invalid_request` that names each part that is wrong
 */
export function checkHarness(hook: string, mode: Mode, given: unknown): void {
  const parsed = (mode === "exported" ? Exported : Shape).safeParse(given);
  if (parsed.success) return;
  throw new HoldpointError("invalid_request", `${hook} gave no harness:\n${z.prettifyError(parsed.error)}`);
}
