/** Putting the server together on an opened participant and a folder of its own. */
import { type Checkpointer, openCheckpointer, type SandboxProvider, type SnapshotIndex } from "@holdpoint/sandbox";
import type { ResourcesEvent } from "@holdpoint/schemas";
import { newBenches } from "./bench.ts";
import { ExecutionLog } from "./execution-log.ts";
import { snapshotsOf } from "./repair-session.ts";
import { TestRunner } from "./test-runner.ts";
import { recordAll, type Resources, type Workshop } from "./workshop.ts";

export async function openWorkshop(
  participant: Resources,
  provider: SandboxProvider,
  stateDir: string,
): Promise<Workshop> {
  return {
    participant,
    provider,
    checkpointer: await checkpointerOf(participant, provider, stateDir),
    tests: new TestRunner(provider),
    executions: new ExecutionLog(stateDir),
    benches: newBenches(),
  };
}

/** Whose the folder is: this process' place in its run, whatever its incarnation. */
export function ownerOf(
  run: string,
  instance: string,
  worker: string,
): { readonly server: string; readonly run: string } {
  return { server: `resources.${instance}.${worker}`, run };
}

function checkpointerOf(participant: Resources, provider: SandboxProvider, stateDir: string): Promise<Checkpointer> {
  const { run, instance, worker } = participant.options;
  return openCheckpointer({
    provider,
    stateDir,
    ...ownerOf(run, instance, worker),
    index: indexOf(participant),
    append: (events) => {
      const named = events.map((event): ResourcesEvent =>
        event.type === "snapshot.taken" ? { ...event, data: { ...event.data, provider: provider.name } } : event,
      );
      // Snapshots are taken inside a capture, where nothing else may be appended; all else waits for its end.
      return recordAll(participant, named, { urgent: events.some(({ type }) => type === "snapshot.taken") });
    },
  });
}

/** What the log says that somebody still needs; whatever else is on disk is garbage. */
function indexOf({ sessions }: Resources): SnapshotIndex {
  const records = sessions.held().flatMap(({ rollout, attempt, state }) =>
    snapshotsOf(state).map(({ snapshotId, digest, provider }) => ({
      rollout,
      attempt,
      snapshot: snapshotId,
      sandbox: state.sandbox ?? "",
      checkpointId: state.snapshot?.snapshotId === snapshotId ? state.snapshot.checkpointId : null,
      digest,
      provider,
      durable: false,
    })),
  );
  return new Map(records.map((record) => [record.snapshot, record]));
}
