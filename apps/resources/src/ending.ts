/** The end of sessions: closed by their environment, or retired by the control plane. What runs is stopped, then freed. */
import { sessionOver } from "@holdpoint/participant";
import type { Episode } from "@holdpoint/schemas";
import type { Session } from "@holdpoint/session";
import type { Bench } from "./bench.ts";
import { type RepairSession, snapshotsOf } from "./repair-session.ts";
import { forgetCallSnapshots, type Workshop } from "./workshop.ts";

/** Ends a session in order. Its snapshots stay as far as a checkpoint that may be restored needs them. Again is no error. */
export async function close(workshop: Workshop, { rollout, attempt }: Episode): Promise<void> {
  const { participant, benches, checkpointer } = workshop;
  const episode = { rollout, attempt };
  const bench = benches.of(episode);
  await bench.stop(sessionOver(episode));
  const session = participant.sessions.get(episode);
  if (session === undefined) return benches.drop(episode, bench);
  try {
    await participant.record({ type: "session.closed", data: episode });
  } finally {
    benches.drop(episode, bench); // where it could not be recorded, the session goes on
  }
  await free(workshop, session, bench);
  const needed = neededBy(participant.sessions.held().filter((other) => other.rollout === rollout));
  await checkpointer.release((record) => record.rollout !== rollout || needed.has(record.snapshot));
}

/** Stops the work of these attempts and all before them, waits for it, and frees their sandboxes. Snapshots stay. */
export async function retire(workshop: Workshop, marks: readonly Episode[]): Promise<void> {
  const { participant, benches } = workshop;
  const stopped = benches.upTo(marks);
  await Promise.all(stopped.map(({ episode, bench }) => bench.stop(sessionOver(episode))));
  const highest = new Map(marks.map(({ rollout, attempt }) => [rollout, attempt]));
  for (const session of participant.sessions.all()) {
    if (session.attempt <= (highest.get(session.rollout) ?? -1)) {
      await free(workshop, session, benches.of(session));
      benches.drop(session, benches.of(session));
    }
  }
  for (const { episode, bench } of stopped) benches.drop(episode, bench);
}

/** Deletes the sandbox of a session that is over, and what was kept to roll back its calls. */
async function free(workshop: Workshop, { state }: Session<RepairSession>, { snapshots }: Bench): Promise<void> {
  if (state.sandbox !== null) await workshop.provider.delete(state.sandbox);
  const { before, started } = state;
  for (const reference of [before, started?.snapshot ?? null])
    if (reference !== null) snapshots.add(reference.snapshotId);
  await forgetCallSnapshots(workshop, snapshots);
}

function neededBy(sessions: readonly Session<RepairSession>[]): ReadonlySet<string> {
  return new Set(sessions.flatMap(({ state }) => snapshotsOf(state).map(({ snapshotId }) => snapshotId)));
}
