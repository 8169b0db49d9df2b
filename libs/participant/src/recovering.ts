/** What a process held when the one before it died, folded from the log (L9), from a snapshot on where there is one (L14). */
import type { SessionEvent } from "@holdpoint/session";
import { loadSnapshot, saveSnapshot } from "./fold-snapshot.ts";
import { adoptGiven } from "./foreign.ts";
import type { ParticipantOptions } from "./participant-options.ts";
import { ownSubjects, type ProcessFold } from "./process-fold.ts";
import type { RoleSpec } from "./role-spec.ts";

/** A start that folded this many messages saves a snapshot, so that the next one need not. */
const snapshotEvery = 1_000;

/**
 * Folds everything up to `upTo` into `fold`, which has folded nothing.
 *
 * @throws HoldpointError `invalid_checkpoint_state` where the stream has lost part of it
 */
export async function recover<State, Own extends SessionEvent>(
  options: ParticipantOptions,
  spec: RoleSpec<State, Own>,
  { fold, upTo }: { readonly fold: ProcessFold<State, Own>; readonly upTo: number },
): Promise<void> {
  const { snapshots, log: stream, worker } = options;
  const { name, control, log, result } = ownSubjects(options, spec.role);
  const snapshot = snapshots && (await loadSnapshot<State>(snapshots, name, upTo));
  if (snapshot !== undefined) fold.load(snapshot);
  const range = { from: (snapshot?.upTo ?? 0) + 1, upTo };
  await adoptGiven(options, spec, { fold: fold.sessions, range: { ...range, worker }, owed: snapshot?.gate.asks });
  await stream.read({ ...range, subjects: [control, log, result] }, (message) => fold.replay(message));
  if (fold.replayed >= snapshotEvery && snapshots) await saveSnapshot(snapshots, fold.save(upTo));
}
