/** What is done where a process or the broker of a run that is up ends by itself. */
import type { RunningBroker } from "@holdpoint/broker";
import { exitCodes } from "@holdpoint/participant";
import { setTimeout as pause } from "node:timers/promises";
import type { ProcessExit } from "./managed-process.ts";

/** Before what ended by itself is started again. */
export const restartMs = 1_000;

interface Keeping {
  readonly signal: AbortSignal;
  readonly tell: (sentence: string) => void;
}

/** What follows from the end of a process. */
export type Consequence =
  /** It was meant to end. */
  | "none"
  /** It goes on where its log stands. */
  | "start again"
  /** Another one has its place: started again it would take that back, and so on for ever. */
  | "leave"
  /** No start mends its settings. */
  | "give up";

/**
 * @param isUp whether everybody has served already: a program that fails before that, such as for a definition that is refused
 *   when its file is loaded, would fail again each time
 */
export function consequenceOf({ cause, code }: Pick<ProcessExit, "cause" | "code">, isUp: boolean): Consequence {
  if (cause !== "own") return "none";
  if (code === exitCodes.fenced) return "leave";
  const isHopeless = code === exitCodes.misconfigured || (code === exitCodes.failed && !isUp);
  return isHopeless ? "give up" : "start again";
}

/** Starts the broker again whenever it ends by itself; returns after the signal, when nothing of that is under way any more. */
export async function keepBroker(
  broker: Pick<RunningBroker, "exited" | "restart" | "logFile">,
  { signal, tell }: Keeping,
): Promise<void> {
  const over = new Promise<void>((resolve) => {
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
  while (!signal.aborted) {
    await Promise.race([broker.exited, over]);
    if (signal.aborted) return;
    tell(`the broker ended by itself and is started again; see ${broker.logFile}`);
    await pause(restartMs, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return;
    await broker.restart().then(
      () => tell("the broker serves again"),
      (error: unknown) => tell(`the broker could not be started: ${String(error)}`),
    );
  }
}
