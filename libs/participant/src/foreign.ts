/**
 * What another worker of the instance held, from the log alone: a restore may give its sessions to this one.
 *
 * A worker's log tells such a session only by name. So whoever folds the log of a worker that took sessions over has to have folded the
 * log that they came from, up to the cut that they were restored of; and so on, since that worker may have taken them over as well.
 */
import { decodeEvents, type EventSchema, type Recorded, type StoredMessage } from "@holdpoint/eventsourcing";
import { HoldpointError } from "@holdpoint/errors";
import { controlSubject, type Cut } from "@holdpoint/schemas";
import { type SessionEvent, SessionFold } from "@holdpoint/session";
import { controlView } from "./control-view.ts";
import { loadSnapshot } from "./fold-snapshot.ts";
import type { ParticipantOptions } from "./participant-options.ts";
import { ownSubjects } from "./process-fold.ts";
import type { LogEvent, RoleSpec } from "./role-spec.ts";

type Options = Pick<ParticipantOptions, "run" | "instance" | "log" | "snapshots">;

/** Which log is folded, and from where to where. */
interface Range {
  readonly worker: string;
  readonly from: number;
  readonly upTo: number;
}

/** Sessions of `worker` that a restore gave to another. */
interface Given {
  readonly restoreId: string;
  readonly worker: string;
  readonly upTo: number;
}

/**
 * The sessions of a worker of this instance as they were at `cut`.
 *
 * @throws HoldpointError `invalid_checkpoint_state` where the log cannot be read
 */
export async function sessionsAt<State, Own extends SessionEvent>(
  options: Options,
  spec: RoleSpec<State, Own>,
  { worker, upTo }: Omit<Range, "from">,
): Promise<SessionFold<State, LogEvent<Own>>> {
  const { run, instance, log, snapshots } = options;
  const subjects = ownSubjects({ run, instance, worker }, spec.role);
  const fold = new SessionFold<State, LogEvent<Own>>(spec.kind);
  const snapshot = snapshots && (await loadSnapshot<State>(snapshots, subjects.name, upTo));
  if (snapshot !== undefined) fold.load(snapshot.sessions);
  const from = (snapshot?.upTo ?? 0) + 1;
  await adoptGiven(options, spec, { fold, range: { worker, from, upTo } });
  await log.read({ from, upTo, subjects: [subjects.control, subjects.log, subjects.result] }, (message) => {
    if (message.subject === subjects.control) {
      for (const recorded of eventsOf(message, controlView)) fold.applyControl(recorded);
    } else for (const recorded of eventsOf(message, spec.schema)) fold.apply(recorded);
  });
  return fold;
}

/** Sees to it that `fold`, which folds `range` next, finds what that log says it took over. */
export async function adoptGiven<State, Own extends SessionEvent>(
  options: Options,
  spec: RoleSpec<State, Own>,
  { fold, range }: { readonly fold: SessionFold<State, LogEvent<Own>>; readonly range: Range },
): Promise<void> {
  for (const { restoreId, worker, upTo } of await givenTo(options, spec.role, range)) {
    fold.adopt(restoreId, worker, await sessionsAt(options, spec, { worker, upTo }));
  }
}

async function givenTo(
  { run, instance, log }: Options,
  role: RoleSpec<never, never>["role"],
  { worker, from, upTo }: Range,
): Promise<readonly Given[]> {
  const given: Given[] = [];
  await log.read({ from, upTo, subjects: [controlSubject(run)] }, (message) => {
    for (const { event } of decodeEvents(message, controlView).events) {
      if (event.type !== "participants.asked") continue;
      const { adoptions = [], checkpointId: restoreId, cut, source } = event.data;
      if (restoreId === null || cut === undefined || source === undefined) continue;
      const mine = adoptions.filter((one) => one.role === role && one.instance === instance && one.worker === worker);
      for (const { of } of mine)
        given.push({ restoreId, worker: of, upTo: positionOf(cut, { source, stream: log.stream }) });
    }
  });
  return given;
}

/** @throws HoldpointError `invalid_checkpoint_state` where the cut says nothing of the stream */
export function positionOf(cut: Cut, { source, stream }: { readonly source: string; readonly stream: string }): number {
  const upTo = cut[stream];
  if (upTo !== undefined) return upTo;
  throw new HoldpointError("invalid_checkpoint_state", `the cut of ${source} says nothing of stream ${stream}`);
}

/** @throws HoldpointError `invalid_checkpoint_state` where one of them cannot be read */
function eventsOf<E>(message: StoredMessage, schema: EventSchema<E>): readonly Recorded<E>[] {
  const { events, problems } = decodeEvents(message, schema);
  if (problems.length === 0) return events;
  throw new HoldpointError("invalid_checkpoint_state", `the log is damaged: ${problems.join("; ")}`);
}
