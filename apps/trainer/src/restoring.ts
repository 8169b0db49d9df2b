/**
 * Going back to a checkpoint: its weights, and what it holds of the run.
 *
 *  1. What still runs of rollouts that are not in these weights is retired first; then what the checkpoint holds of them is
 *     restored, and resumed. From there the trainer goes on as if it had only been restarted.
 *  2. A crash on the way leaves nothing half done: what was retired is void, and what was restored and not taken is retired by the
 *     next try.
 *  3. Nothing is saved before the restore stands: until then the trainer's own state is the one that it had.
 */
import { resultOf } from "@holdpoint/client";
import { HoldpointError } from "@holdpoint/errors";
import type { Outcome, Result } from "@holdpoint/schemas";
import { setTimeout as delay } from "node:timers/promises";
import type { TrainerContext } from "./context.ts";
import { attempt, isLasting, pauseMs, prefixes, resume, resumeLeftOpen, timeoutOf, tries } from "./commanding.ts";
import { wayBack } from "./next-step.ts";
import { requireSamePlan } from "./same-run.ts";
import { planOf } from "./settings.ts";
import type { CheckpointFile } from "./state-dir.ts";

/**
 * The checkpoint to go on from, after going back to `wanted`: `latest`, or the id of one.
 *
 * @throws HoldpointError `not_found` where there is no such checkpoint with a complete file; as the restore fails
 */
export async function goBack(context: TrainerContext, wanted: string): Promise<CheckpointFile> {
  const candidates = await candidatesFor(context, wanted);
  for (const file of candidates) {
    requireSamePlan(file.state.plan, planOf(context.settings));
    const checkpoints = await goBackTo(context, file);
    if (checkpoints !== undefined) return { ...file, state: { ...file.state, checkpoints } };
  }
  throw noCheckpoint(wanted, "none of those that have a file could be restored");
}

/** Newest first. */
async function candidatesFor(context: TrainerContext, wanted: string): Promise<readonly CheckpointFile[]> {
  const { dir, logger } = context;
  const { restorable = [] } = await persistently(context, { operation: "status" });
  const files = new Set(await dir.checkpoints());
  if (wanted !== "latest") {
    if (!restorable.includes(wanted)) throw noCheckpoint(wanted, `those that can be restored: ${inWords(restorable)}`);
    return [await dir.checkpoint(wanted)];
  }
  const found: CheckpointFile[] = [];
  for (const id of restorable.toReversed()) {
    if (!files.has(id)) continue;
    try {
      found.push(await dir.checkpoint(id));
    } catch (error) {
      logger.warn({ err: error, checkpointId: id }, "passed over");
    }
  }
  if (found.length === 0) throw noCheckpoint(wanted, `those that can be restored have no file: ${inWords(restorable)}`);
  return found;
}

/** @returns how many checkpoints were begun; undefined where this one cannot be restored, and nothing of it was */
async function goBackTo(context: TrainerContext, file: CheckpointFile): Promise<number | undefined> {
  const { history } = context.view;
  for (let left = tries; left > 0; left--) {
    const restored = await retireWhatRuns(context, file);
    const came = restored.length === 0 ? "stands" : await restore(context, file.checkpointId, restored);
    if (came === "never") return undefined;
    if (came === "stands") return Math.max(file.state.checkpoints, history.nextNumber(prefixes.checkpoint) - 1);
    await delay(pauseMs);
  }
  throw new HoldpointError(
    "unavailable",
    `${file.checkpointId} was not restored in ${tries} tries; see the log for why`,
  );
}

/** Looked at anew for each try: a restore before this one may have come to its end meanwhile. @returns what is to be restored */
async function retireWhatRuns(
  context: TrainerContext,
  { checkpointId: source, cut, state }: CheckpointFile,
): Promise<readonly string[]> {
  const { view, groups, logger } = context;
  const scope = view.history.committed.find(({ checkpointId }) => checkpointId === source)?.scope ?? [];
  const { retired, restored } = wayBack({ groups, state, attempts: view.history }, scope, view.known());
  logger.info({ source, cut, retired: retired.length, restored: restored.length }, "going back");
  if (retired.length === 0) return restored;
  await persistently(context, { operation: "retire", rollouts: [...retired] });
  await view.until(() => retired.every(({ rollout, attempt: mark }) => view.history.attemptOf(rollout) > mark));
  return restored;
}

/** @returns whether the restore stands; `never`: this checkpoint cannot be restored */
async function restore(
  context: TrainerContext,
  source: string,
  restored: readonly string[],
): Promise<"stands" | "not yet" | "never"> {
  const { view, logger, controller } = context;
  const { history } = view;
  const checkpointId = `${prefixes.restore}${history.nextNumber(prefixes.restore)}`;
  const command = { operation: "restore" as const, checkpointId, source, scope: [...restored] };
  const outcome = await controller.command({ ...command, timeoutMs: timeoutOf(context) });
  if (outcome.ok) {
    await view.until(() => restored.every((rollout) => history.isContinued(rollout) || isVoid(outcome, rollout)));
    logger.info({ source, checkpointId, rollouts: restored.length }, "restored");
    await resume(context, checkpointId);
    return "stands";
  }
  const { code, message } = outcome.problem;
  logger.warn({ source, checkpointId, code, why: message }, "not restored");
  if (code === "invalid_checkpoint_state" || code === "not_found") return "never";
  if (isLasting(outcome)) resultOf(outcome);
  await resume(context, checkpointId);
  return "not yet";
}

/** Whether the receipt says that the rollout starts over: it is marked, and is dispatched as a new attempt. */
function isVoid({ result }: Outcome & { ok: true }, rollout: string): boolean {
  return result.receipt?.some(({ restarted }) => restarted.some((episode) => episode.rollout === rollout)) ?? false;
}

/** A command that has to be done before anything else is: trouble that passes is waited for. */
async function persistently(
  context: TrainerContext,
  command: { operation: "status" } | { operation: "retire"; rollouts: { rollout: string; attempt: number }[] },
): Promise<Result> {
  const timed = command.operation === "status" ? command : { ...command, timeoutMs: timeoutOf(context) };
  for (let left = tries; left > 0; left--) {
    await resumeLeftOpen(context); // it may have begun only now
    const result = await attempt(context, timed);
    if (result !== undefined) return result;
    await delay(pauseMs);
  }
  throw new HoldpointError("unavailable", `${command.operation} was not done in ${tries} tries; see the log for why`);
}

function inWords(ids: readonly string[]): string {
  return ids.length === 0 ? "none" : ids.join(", ");
}

function noCheckpoint(wanted: string, what: string): HoldpointError {
  return new HoldpointError(
    "not_found",
    `HOLDPOINT_RESTORE=${wanted}: there is no such checkpoint (${what}). Name one that has a file in HOLDPOINT_STATE_DIR, or leave the variable out to go on from the saved state`,
  );
}
