/**
 * What another worker of the instance held, from the log alone: a restore may give its sessions to this one.
 *
 * A worker's log tells such a session only by name. So whoever folds the log of a worker that took sessions over has to have folded the
 * log that they came from, up to the cut that they were restored of; and so on, since that worker may have taken them over as well.
 */
import type { Ask, Obligation } from "@holdpoint/checkpoint";
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

interface Place {
  readonly role: RoleSpec<never, never>["role"];
  readonly instance: string;
  readonly worker: string;
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
  await adoptGiven(options, spec, { fold, range: { worker, from, upTo }, owed: snapshot?.gate.asks });
  await log.read({ from, upTo, subjects: [subjects.control, subjects.log, subjects.result] }, (message) => {
    if (message.subject === subjects.control) {
      for (const recorded of eventsOf(message, controlView)) fold.applyControl(recorded);
    } else for (const recorded of eventsOf(message, spec.schema)) fold.apply(recorded);
  });
  return fold;
}

/** What a fold may read of sessions that another worker held. */
interface Adopting<State, Own extends SessionEvent> {
  readonly fold: SessionFold<State, LogEvent<Own>>;
  /** What it folds next. */
  readonly range: Range;
  /** Where it begins with a snapshot: what was asked by then, and not answered. */
  readonly owed?: readonly Obligation[] | undefined;
}

/** Sees to it that the fold finds what its log says it took over: for what is asked in the range, and what was asked before it. */
export async function adoptGiven<State, Own extends SessionEvent>(
  options: Options,
  spec: RoleSpec<State, Own>,
  { fold, range, owed = [] }: Adopting<State, Own>,
): Promise<void> {
  const { instance, log } = options;
  const place = { role: spec.role, instance, worker: range.worker };
  const asks = [...owed.map(({ ask }) => ask), ...(await asksIn(options, range))];
  for (const { restoreId, worker, upTo } of asks.flatMap((ask) => givenBy(ask, place, log.stream))) {
    fold.adopt(restoreId, worker, await sessionsAt(options, spec, { worker, upTo }));
  }
}

async function asksIn({ run, log }: Options, { from, upTo }: Range): Promise<readonly Ask[]> {
  const asks: Ask[] = [];
  await log.read({ from, upTo, subjects: [controlSubject(run)] }, (message) => {
    for (const { event } of decodeEvents(message, controlView).events) {
      if (event.type === "participants.asked") asks.push(event.data);
    }
  });
  return asks;
}

/** What an ask to restore gives to a worker; nothing where it is another ask. */
function givenBy({ adoptions = [], checkpointId, cut, source }: Ask, place: Place, stream: string): readonly Given[] {
  if (checkpointId === null || cut === undefined || source === undefined) return [];
  const { role, instance, worker } = place;
  return adoptions
    .filter((one) => one.role === role && one.instance === instance && one.worker === worker)
    .map(({ of }) => ({ restoreId: checkpointId, worker: of, upTo: positionOf(cut, { source, stream }) }));
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
