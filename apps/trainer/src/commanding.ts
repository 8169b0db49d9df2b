/** The trainer's commands: what their failure means to a trainer, and that nothing of its own stays open. */
import { resultOf } from "@holdpoint/client";
import { type ErrorCode, HoldpointError } from "@holdpoint/errors";
import type { Command, Outcome, Result } from "@holdpoint/schemas";
import type { TrainerContext } from "./context.ts";

/** Codes that no later try mends. All others are trouble that passes. */
const lasting: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "invalid_request",
  "unauthorized",
  "session_conflict",
  "rollout_id_required",
  "invalid_checkpoint_state",
]);

/** What a coordinator has beyond the deadline of a command, for its answer and its clean-up. */
const graceMs = 15_000;

/** Tries of a command that has to be done before anything else is, such as while participants start. */
export const tries = 20;
export const pauseMs = 500;

/** The prefixes of the ids that trainers give, to checkpoints and to restores: nobody else is to begin an id with them. */
export const prefixes = { checkpoint: "trainer-c", restore: "trainer-r" } as const;

/** Whether the id is one of those that trainers give. */
function isTrainersId(checkpointId: string): boolean {
  return /^trainer-[cr]\d{1,15}$/.test(checkpointId);
}

export function isLasting({ problem }: Outcome & { ok: false }): boolean {
  return lasting.has(problem.code);
}

/**
 * What the command led to; undefined where it met trouble that passes, or nobody was there to obey it in its time.
 *
 * @throws HoldpointError where an invariant is broken
 */
export async function attempt(context: TrainerContext, command: Command): Promise<Result | undefined> {
  const { controller, logger } = context;
  const { operation } = command;
  const patience = AbortSignal.timeout(timeoutOf(context) + graceMs);
  const outcome = await controller.command(command, { signal: patience }).catch((error: unknown) => {
    if (!patience.aborted) throw error;
    logger.warn({ operation }, "no coordinator answered");
  });
  if (outcome === undefined) return undefined;
  if (outcome.ok) return outcome.result;
  const { problem } = outcome;
  logger.warn({ operation, command: outcome.command, code: problem.code, why: problem.message }, "not done");
  return isLasting(outcome) ? resultOf(outcome) : undefined;
}

/** Ends what a trainer before this one, or a command that failed, has left open. */
export async function resumeLeftOpen(context: TrainerContext): Promise<void> {
  const { open } = context.view.history;
  if (open !== undefined && isTrainersId(open)) await resume(context, open);
}

/**
 * Returns once the id is over: nothing of it is closed any more, but at a participant that is away.
 *
 * @throws HoldpointError `unavailable` where it is not over after many tries; else as `attempt`
 */
export async function resume(context: TrainerContext, checkpointId: string): Promise<void> {
  const { view } = context;
  const isOver = () => view.history.isResumed(checkpointId);
  for (let left = tries; left > 0; left--) {
    const result = await attempt(context, { operation: "resume", checkpointId, timeoutMs: timeoutOf(context) });
    if (result !== undefined) return view.until(isOver);
    const pause = AbortSignal.timeout(pauseMs);
    await view.until(isOver, pause).catch((error: unknown) => {
      if (!pause.aborted) throw error;
    });
    if (isOver()) return;
  }
  throw new HoldpointError(
    "unavailable",
    `${checkpointId} could not be resumed in ${tries} tries; see the log for why`,
  );
}

export function timeoutOf({ settings }: TrainerContext): number {
  return settings.HOLDPOINT_CHECKPOINT_TIMEOUT_MS;
}
