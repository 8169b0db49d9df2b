/**
 * The trainer's checkpoint, which names the run's (§9 of the protocol): it is the last thing that is published of it.
 *
 *  1. What is saved with a checkpoint was consumed before it was asked for, and so lies before its cut.
 *  2. Trouble that passes skips a checkpoint, and the one before it stays. A broken invariant stops the run.
 *  3. Older ones are released after the new one is complete. Those that others have taken are theirs to release.
 */
import type { TrainerContext } from "./context.ts";
import { attempt, isOwnId, prefixes, timeoutOf } from "./commanding.ts";
import type { TrainerState } from "./state.ts";

/** Checkpoints of its own that a trainer keeps. */
const keptCheckpoints = 2;

/** The state in which the next checkpoint is begun: its number is taken. */
export function begunCheckpoint({ view: { history } }: TrainerContext, state: TrainerState): TrainerState {
  return { ...state, checkpoints: Math.max(state.checkpoints + 1, history.nextNumber(prefixes.checkpoint)) };
}

/**
 * Takes a checkpoint of the run and saves `state`, whose number it has, with it. Nothing may be dispatched or trained meanwhile.
 *
 * @returns whether there is a new checkpoint
 * @throws HoldpointError where an invariant is broken
 */
export async function takeCheckpoint(context: TrainerContext, state: TrainerState): Promise<boolean> {
  const { dir, log, view, logger, say } = context;
  const checkpointId = `${prefixes.checkpoint}${state.checkpoints}`;
  const result = await attempt(context, { operation: "checkpoint", checkpointId, timeoutMs: timeoutOf(context) });
  const cut = result?.cut?.[log.stream];
  if (result !== undefined) await view.until(() => view.history.isResumed(checkpointId));
  if (cut === undefined || cut < state.cursor) {
    logger.warn({ checkpointId, cut, cursor: state.cursor }, "checkpoint skipped");
    return false;
  }
  await dir.saveCheckpoint({ checkpointId, cut, state });
  const { version, cursor } = state;
  await say([{ type: "trainer.saved", data: { checkpointId, version, cursor } }]);
  logger.info({ checkpointId, cut, version, continued: result?.continued?.length }, "checkpoint taken");
  await releaseOlder(context);
  return true;
}

/** Releases all of the trainer's own checkpoints but the newest. Best effort: the next one tries again. */
async function releaseOlder(context: TrainerContext): Promise<void> {
  const { dir, view } = context;
  const files = new Set(await dir.checkpoints());
  const committed = view.history.committed.map(({ checkpointId }) => checkpointId);
  const own = committed.filter((id) => files.has(id) && isOwnId(id)).slice(-keptCheckpoints);
  await release(
    context,
    committed.filter((id) => own.includes(id) || !isOwnId(id)),
  );
}

/**
 * Frees what only other checkpoints than `kept` need, and drops their files. Best effort.
 *
 * @throws HoldpointError where an invariant is broken
 */
export async function release(context: TrainerContext, kept: readonly string[]): Promise<void> {
  const { dir, view } = context;
  const { lastResumed: checkpointId } = view.history;
  if (checkpointId === undefined) return;
  const timeoutMs = timeoutOf(context);
  const result = await attempt(context, { operation: "release", checkpointId, kept: [...kept], timeoutMs });
  if (result === undefined) return;
  for (const id of await dir.checkpoints()) if (!kept.includes(id)) await dir.removeCheckpoint(id);
}
