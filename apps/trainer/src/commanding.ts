/** The trainer's commands: what their failure means to a trainer, and that nothing of its own stays open. */
import { resultOf } from "@holdpoint/client";
import type { ErrorCode } from "@holdpoint/errors";
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

/** The prefixes of the ids that trainers give: to checkpoints, and to restores. */
export const prefixes = { checkpoint: "c", restore: "r" } as const;

/** Whether a trainer has given this id. */
export function isOwnId(checkpointId: string): boolean {
  return /^[cr]\d{1,15}$/.test(checkpointId);
}

export function isLasting({ problem }: Outcome & { ok: false }): boolean {
  return lasting.has(problem.code);
}

/**
 * What the command led to; undefined where it met trouble that passes.
 *
 * @throws HoldpointError where an invariant is broken
 */
export async function attempt(context: TrainerContext, command: Command): Promise<Result | undefined> {
  const outcome = await context.controller.command(command);
  if (outcome.ok) return outcome.result;
  const { operation, problem } = outcome;
  context.logger.warn({ operation, command: outcome.command, code: problem.code, why: problem.message }, "not done");
  return isLasting(outcome) ? resultOf(outcome) : undefined;
}

/** Ends what a trainer before this one, or a command that failed, has left open. */
export async function resumeLeftOpen(context: TrainerContext): Promise<void> {
  const { open } = context.view.history;
  if (open === undefined || !isOwnId(open)) return;
  await resume(context, open);
}

/** Returns once the id is over: nothing of it is closed any more, but for a participant that is away and resumes by its lease. */
export async function resume(context: TrainerContext, checkpointId: string): Promise<void> {
  const { controller, view, logger } = context;
  const outcome = await controller.command({ operation: "resume", checkpointId, timeoutMs: timeoutOf(context) });
  if (!outcome.ok) {
    logger.warn({ checkpointId, why: outcome.problem.message }, "not everybody resumed");
    if (isLasting(outcome)) resultOf(outcome);
  }
  await view.until(() => view.history.isResumed(checkpointId));
}

export function timeoutOf({ settings }: TrainerContext): number {
  return settings.HOLDPOINT_CHECKPOINT_TIMEOUT_MS;
}
