/** A call that started and did not finish is made as if it had never started: the session goes on in a fork from before it. */
import { HoldpointError } from "@holdpoint/errors";
import type { Episode } from "@holdpoint/schemas";
import { forgetCallSnapshots, newId, sessionIn, type Workshop } from "./workshop.ts";

/**
 * Rolls back the call that has started, if it may have changed anything.
 *
 * @throws HoldpointError `invalid_checkpoint_state` where its snapshot is missing or damaged; the session is lost then, and
 *   the log says so
 */
export async function rollBack(workshop: Workshop, episode: Episode): Promise<void> {
  const { participant, provider, benches } = workshop;
  const { state, sandbox: before } = sessionIn(workshop, episode);
  const from = state.started?.snapshot ?? null;
  if (from === null) return;
  const sandbox = newId("box", episode);
  await provider.fork(from, sandbox).catch(async (error: unknown) => {
    if (HoldpointError.is(error, "invalid_checkpoint_state")) await markLost(workshop, episode, error.message);
    throw error;
  });
  try {
    await participant.record({ type: "sandbox.lent", data: { ...episode, sandbox, from: from.snapshotId } });
  } catch (error) {
    // Where the broker did not say whether it stored the event, the fork may be lent; if not, the next start finds it.
    if (!HoldpointError.is(error, "unavailable")) await provider.delete(sandbox);
    throw error;
  }
  await provider.delete(before);
  const { snapshots } = benches.of(episode);
  await forgetCallSnapshots(workshop, snapshots.add(from.snapshotId));
}

/** The session cannot go on, and cannot be captured: its episode starts over. */
export async function markLost({ participant }: Workshop, episode: Episode, why: string): Promise<void> {
  await participant.record({ type: "session.restart_marked", data: { ...episode, why } });
}
