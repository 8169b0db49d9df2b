/** The asks to restore, to retire and to release. */
import type { Ask } from "@holdpoint/checkpoint";
import { HoldpointError } from "@holdpoint/errors";
import {
  decodeEvents,
  type EventSchema,
  eventSchema,
  type Recorded,
  type StoredMessage,
} from "@holdpoint/eventsourcing";
import { type Assignment, ControlEvent, type Cut, type Episode, type ParticipantEvent } from "@holdpoint/schemas";
import { keyOf, moved, type Session, type SessionEvent, SessionFold } from "@holdpoint/session";
import { loadSnapshot } from "./fold-snapshot.ts";
import { digestsOf, holdingDigest, sessionDigest } from "./holdings.ts";
import type { Answer } from "./obedience.ts";
import type { Participant } from "./participant.ts";

const controlEvents = eventSchema(ControlEvent);

/**
 * Replays the stream up to the cut, and installs what the checkpoint fixed under the new attempts. Nothing of it counts until
 * the restore is installed everywhere. A session that the hook marks as a restart is answered as one: it cannot be gone on with.
 *
 * @throws HoldpointError `invalid_checkpoint_state` where the log or what it refers to does not give what was fixed
 */
export async function restore<State, Own extends SessionEvent>(
  participant: Participant<State, Own>,
  { source, cut, assignments = [], checkpointId }: Ask,
  signal: AbortSignal,
): Promise<Answer> {
  if (source === undefined || cut === undefined || checkpointId === null) {
    throw new HoldpointError("invalid_request", "a restore names its source and its cut");
  }
  const fixed = await replayed(participant, source, cut);
  signal.throwIfAborted();
  const sessions = replacements(fixed, assignments, source);
  const rebuilt = (await participant.hooks.restore?.(sessions, signal)) ?? [];
  signal.throwIfAborted();
  const { kind } = participant.spec;
  const restored = sessions.map((session): ParticipantEvent => {
    const { rollout, attempt, from } = session;
    const digest = sessionDigest(kind, session);
    return {
      type: "session.restored",
      data: { rollout, attempt, from: from?.attempt ?? 0, source, checkpointId, digest },
    };
  });
  if (restored.length > 0) await participant.obey([...restored, ...rebuilt]);
  const marked = new Set(
    rebuilt.filter(({ type }) => type === "session.restart_marked").map(({ data }) => nameOf(data)),
  );
  const isMarked = (episode: Episode) => marked.has(keyOf(episode));
  const episodes = sessions.map(({ rollout, attempt }) => ({ rollout, attempt }));
  return {
    digest: holdingDigest(digestsOf(kind, fixed)),
    sessions: fixed.length,
    installed: episodes.filter((episode) => !isMarked(episode)),
    restarts: episodes.filter(isMarked),
  };
}

/** The episode that an event of a hook is about. */
function nameOf({ rollout, attempt }: { readonly rollout?: unknown; readonly attempt?: unknown }): string {
  return `${String(rollout)}/${String(attempt)}`;
}

/** What `source` fixed of this process' sessions, from the log alone. */
async function replayed<State, Own extends SessionEvent>(
  participant: Participant<State, Own>,
  source: string,
  cut: Cut,
): Promise<readonly Session<State>[]> {
  const { log, snapshots } = participant.options;
  const upTo = cut[log.stream];
  if (upTo === undefined) {
    throw new HoldpointError("invalid_checkpoint_state", `the cut of ${source} says nothing of stream ${log.stream}`);
  }
  const { spec, subjects } = participant;
  const fold = new SessionFold(spec.kind);
  const snapshot = snapshots && (await loadSnapshot<State>(snapshots, subjects.name, upTo));
  if (snapshot !== undefined) fold.load(snapshot.sessions);
  const options = {
    from: (snapshot?.upTo ?? 0) + 1,
    upTo,
    subjects: [subjects.control, subjects.log, subjects.result],
  };
  await log.read(options, (message) => {
    if (message.subject === subjects.control) {
      for (const recorded of eventsOf(message, controlEvents)) fold.applyControl(recorded);
    } else for (const recorded of eventsOf(message, spec.schema)) fold.apply(recorded);
  });
  return fold.fixedBy(source) ?? [];
}

/** @throws HoldpointError `invalid_checkpoint_state` where one of them cannot be read */
function eventsOf<E>(message: StoredMessage, schema: EventSchema<E>): readonly Recorded<E>[] {
  const { events, problems } = decodeEvents(message, schema);
  if (problems.length === 0) return events;
  throw new HoldpointError("invalid_checkpoint_state", `the log is damaged: ${problems.join("; ")}`);
}

function replacements<State>(
  fixed: readonly Session<State>[],
  assignments: readonly Assignment[],
  source: string,
): readonly Session<State>[] {
  return assignments.flatMap(({ rollout, from, to }) => {
    const origin = fixed.find((session) => session.rollout === rollout && session.attempt === from);
    if (origin === undefined) return [];
    const status = moved(origin.status, "session.unparked");
    return [{ ...origin, attempt: to, status, claimed: false, from: { attempt: from, source } }];
  });
}

/** Stops the work of the attempts named and of all before them, and drops their sessions. */
export async function retire<State, Own extends SessionEvent>(
  participant: Participant<State, Own>,
  { rollouts = [] }: Ask,
  signal: AbortSignal,
): Promise<Answer> {
  const marks = new Map(rollouts.map(({ rollout, attempt }) => [rollout, attempt]));
  const isMarked = ({ rollout, attempt }: Episode) => attempt <= (marks.get(rollout) ?? -1);
  const freed = (await participant.hooks.retire?.(rollouts, signal)) ?? [];
  await participant.admission.settled(isMarked, signal); // a seed that was asked for before may still make a session
  const retired = participant.sessions
    .all()
    .filter(isMarked)
    .map(({ rollout, attempt }): ParticipantEvent => ({ type: "session.retired", data: { rollout, attempt } }));
  if (freed.length + retired.length > 0) await participant.obey([...freed, ...retired]);
  return {};
}

/** Frees external state that no checkpoint in `kept` needs. */
export async function release<State, Own extends SessionEvent>(
  participant: Participant<State, Own>,
  { kept = [] }: Ask,
  signal: AbortSignal,
): Promise<Answer> {
  const freed = (await participant.hooks.release?.(kept, signal)) ?? [];
  if (freed.length > 0) await participant.obey(freed);
  return {};
}
