/** What the parts of the server share, and what they all have to know of a session. */
import { HoldpointError } from "@holdpoint/errors";
import { type Participant, sessionOver } from "@holdpoint/participant";
import { Task } from "@holdpoint/repair";
import type { Checkpointer, IsReferenced, SandboxProvider } from "@holdpoint/sandbox";
import type { Episode, ResourcesEvent } from "@holdpoint/schemas";
import { randomBytes } from "node:crypto";
import * as z from "zod";
import type { Bench, Benches } from "./bench.ts";
import type { ExecutionLog } from "./execution-log.ts";
import { type InstalledPackage, installedPackage } from "./installed-package.ts";
import { type RepairSession, snapshotsOf } from "./repair-session.ts";
import type { TestRunner } from "./test-runner.ts";

/** The resources server as a participant: its sessions are sandboxes with a package under repair. */
export type Resources = Participant<RepairSession, ResourcesEvent>;

export interface Workshop {
  readonly participant: Resources;
  readonly provider: SandboxProvider;
  readonly checkpointer: Checkpointer;
  readonly tests: TestRunner;
  readonly executions: ExecutionLog;
  readonly benches: Benches;
}

/** What an episode is seeded with; whatever else is in it is for others. */
export const RepairSeed = z.looseObject({ task: Task });

/** An id of a sandbox, a snapshot or an execution: never the same again, and readable. */
export function newId(kind: string, { rollout, attempt }: Episode): string {
  return `${kind}-${rollout.slice(0, 64)}-${attempt}-${randomBytes(6).toString("hex")}`;
}

/** @throws HoldpointError `stale_attempt` where the session has ended, `invalid_checkpoint_state` where its sandbox was lost */
export function sessionIn(
  { participant }: Workshop,
  episode: Episode,
): { readonly state: RepairSession; readonly sandbox: string } {
  const session = participant.sessions.get(episode);
  if (session === undefined) throw sessionOver(episode);
  const { sandbox, lost } = session.state;
  if (sandbox !== null && lost === null) return { state: session.state, sandbox };
  throw new HoldpointError(
    "invalid_checkpoint_state",
    `attempt ${episode.attempt} of ${episode.rollout} has no sandbox (${lost ?? "none was lent"}): it has to start over`,
    { details: { rollout: episode.rollout, attempt: episode.attempt } },
  );
}

/** Does `work` at the bench of an episode; it leaves none behind where there is no session, or none any more. */
export function atBench<Result>(
  { participant, benches }: Workshop,
  episode: Episode,
  work: (bench: Bench) => Promise<Result>,
): Promise<Result> {
  return benches.at(episode, () => participant.sessions.get(episode) !== undefined, work);
}

/** The package that the session repairs. */
export async function targetOf({ participant }: Workshop, { seed }: RepairSession): Promise<InstalledPackage> {
  const { task } = RepairSeed.parse(JSON.parse(await participant.contents.read(seed)));
  return installedPackage(task.package);
}

/**
 * Whether a kept checkpoint, one in progress, a live session or a restored one needs a snapshot, as far as the log has come.
 * What nothing needs is never needed again.
 */
export function referencedNow({ participant }: Pick<Workshop, "participant">): IsReferenced {
  const needed = new Set(
    participant.sessions.held().flatMap(({ state }) => snapshotsOf(state).map(({ snapshotId }) => snapshotId)),
  );
  return ({ snapshot }) => needed.has(snapshot);
}

/** Events in one message, which holds 512 KiB; one of ours takes less than 1 KiB. */
const eventsPerMessage = 500;

/** Appends what belongs to no session's work, as many as there are. @param options.urgent also inside a capture */
export async function recordAll(
  participant: Resources,
  events: readonly ResourcesEvent[],
  options: { readonly urgent?: boolean } = {},
): Promise<void> {
  for (let from = 0; from < events.length; from += eventsPerMessage) {
    await participant.obey(events.slice(from, from + eventsPerMessage), options);
  }
}

/** Deletes snapshots that are in no index: they were taken to roll back calls. */
export async function forgetCallSnapshots({ provider }: Workshop, snapshots: Set<string>): Promise<void> {
  for (const snapshot of snapshots) {
    await provider.deleteSnapshot(snapshot);
    snapshots.delete(snapshot);
  }
}
