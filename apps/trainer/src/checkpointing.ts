/**
 * The trainer's checkpoint, which names the run's (§9 of the protocol): it is the last thing that is published of it.
 *
 *  1. What is saved with a checkpoint was consumed before it was asked for, and so lies before its cut.
 *  2. Trouble that passes skips a checkpoint, and the one before it stays. A broken invariant stops the run.
 *  3. Older ones are released after the new one is complete, and all of them at the end. Its own are those that it has saved to have
 *     begun, whatever ids look like; those that others have taken are theirs to release.
 */
import type { TrainerContext } from "./context.ts";
import { attempt, prefixes, timeoutOf } from "./commanding.ts";
import type { TrainerState } from "./state.ts";

/** Checkpoints of its own that a trainer keeps. */
const keptCheckpoints = 2;

/** The state in which the next checkpoint is begun: its number is taken, and its id is known as the trainer's own from here on. */
export function begunCheckpoint({ view: { history } }: TrainerContext, state: TrainerState): TrainerState {
  const checkpoints = Math.max(state.checkpoints + 1, history.nextNumber(prefixes.checkpoint));
  const committed = new Set(history.committed.map(({ checkpointId }) => checkpointId));
  const taken = state.taken.filter((id) => committed.has(id) || !history.isResumed(id));
  return { ...state, checkpoints, taken: [...taken, idOf(checkpoints)] };
}

function idOf(checkpoint: number): string {
  return `${prefixes.checkpoint}${checkpoint}`;
}

/**
 * Takes a checkpoint of the run and saves `state`, whose number it has, with it. Nothing may be dispatched or trained meanwhile.
 *
 * @returns whether there is a new checkpoint
 * @throws HoldpointError where an invariant is broken
 */
export async function takeCheckpoint(context: TrainerContext, state: TrainerState): Promise<boolean> {
  const { dir, log, view, logger, say } = context;
  const checkpointId = idOf(state.checkpoints);
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
  await releaseOlder(context, state);
  return true;
}

/** Ids of `state` that are its own, oldest first, and what else can be restored. */
async function restorable({ dir, view }: TrainerContext, state: TrainerState) {
  const files = new Set(await dir.checkpoints());
  const taken = new Set(state.taken);
  const ids = view.history.committed.map(({ checkpointId }) => checkpointId);
  const isOwn = (id: string) => taken.has(id) || files.has(id);
  return { own: ids.filter(isOwn), foreign: ids.filter((id) => !isOwn(id)), files };
}

/** Releases all of the trainer's own checkpoints but the newest that have a file. Best effort: the next one tries again. */
async function releaseOlder(context: TrainerContext, state: TrainerState): Promise<void> {
  const { own, foreign, files } = await restorable(context, state);
  const newest = own.filter((id) => files.has(id)).slice(-keptCheckpoints);
  await release(context, [...foreign, ...newest]);
}

/**
 * Releases all of the trainer's own checkpoints: the run has ended. Best effort.
 *
 * @throws HoldpointError where an invariant is broken
 */
export async function releaseOwn(context: TrainerContext, state: TrainerState): Promise<void> {
  const { foreign } = await restorable(context, state);
  await release(context, foreign);
}

/**
 * Frees what only other checkpoints than `kept` need, and drops their files. Best effort.
 *
 * Nobody's checkpoint is freed that was committed meanwhile: it is honoured for the id that was resumed most recently alone, and
 * what was committed before that resume has been seen here.
 */
async function release(context: TrainerContext, kept: readonly string[]): Promise<void> {
  const { dir, view } = context;
  const { lastResumed: checkpointId } = view.history;
  if (checkpointId === undefined) return;
  const timeoutMs = timeoutOf(context);
  const result = await attempt(context, { operation: "release", checkpointId, kept: [...kept], timeoutMs });
  if (result === undefined) return;
  for (const id of await dir.checkpoints()) if (!kept.includes(id)) await dir.removeCheckpoint(id);
}
