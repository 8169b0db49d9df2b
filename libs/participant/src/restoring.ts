/** The asks to restore, to retire and to release. */
import type { Ask } from "@holdpoint/checkpoint";
import { HoldpointError } from "@holdpoint/errors";
import type { Adoption, Assignment, Episode, ParticipantEvent } from "@holdpoint/schemas";
import { keyOf, moved, type Session, type SessionEvent } from "@holdpoint/session";
import { positionOf, sessionsAt } from "./foreign.ts";
import { digestsOf, holdingDigest, sessionDigest } from "./holdings.ts";
import type { Answer } from "./obedience.ts";
import type { Participant } from "./participant.ts";

/**
 * Replays the stream up to the cut, and installs what the checkpoint fixed under the new attempts. Nothing of it counts until
 * the restore is installed everywhere. A session that the hook marks as a restart is answered as one: it cannot be gone on with.
 *
 * @throws HoldpointError `invalid_checkpoint_state` where the log or what it refers to does not give what was fixed
 */
export async function restore<State, Own extends SessionEvent>(
  participant: Participant<State, Own>,
  { source, cut, assignments = [], adoptions = [], checkpointId }: Ask,
  signal: AbortSignal,
): Promise<Answer> {
  if (source === undefined || cut === undefined || checkpointId === null) {
    throw new HoldpointError("invalid_request", "a restore names its source and its cut");
  }
  const upTo = positionOf(cut, { source, stream: participant.options.log.stream });
  const held = await heldAt(participant, { source, upTo, restoreId: checkpointId, adoptions });
  signal.throwIfAborted();
  const sessions = held.flatMap(({ worker, fixed }) =>
    replacements(fixed, assignments, source).map((session) => ({ ...session, worker })),
  );
  const rebuilt = (await participant.hooks.restore?.(sessions, signal)) ?? [];
  signal.throwIfAborted();
  const restored = sessions.map((session) => restoredEvent(participant, session, { source, checkpointId }));
  if (restored.length > 0) await participant.obey([...restored, ...rebuilt]);
  return { ...found(participant, held), ...installed(sessions, rebuilt) };
}

/** What a worker of the instance held: this one's comes first, then what this one takes over. */
interface Held<State> {
  readonly worker: string;
  readonly fixed: readonly Session<State>[];
}

interface Source {
  readonly source: string;
  readonly upTo: number;
  readonly restoreId: string;
  readonly adoptions: readonly Adoption[];
}

/** What `source` fixed of this worker's sessions, and of those that it takes over, from the log alone. */
async function heldAt<State, Own extends SessionEvent>(
  { options, spec, sessions }: Participant<State, Own>,
  { source, upTo, restoreId, adoptions }: Source,
): Promise<readonly Held<State>[]> {
  const { worker, instance } = options;
  const mine = adoptions.filter((one) => one.role === spec.role && one.instance === instance && one.worker === worker);
  const own = await sessionsAt(options, spec, { worker, upTo });
  const held: Held<State>[] = [{ worker, fixed: own.fixedBy(source) ?? [] }];
  for (const { of } of mine) {
    const fold = await sessionsAt(options, spec, { worker: of, upTo });
    sessions.adopt(restoreId, of, fold); // what this process says of it from here on is understood
    held.push({ worker: of, fixed: fold.fixedBy(source) ?? [] });
  }
  return held;
}

/** The digests of what was found, to be compared with what was fixed. */
function found<State, Own extends SessionEvent>(
  { spec: { kind } }: Participant<State, Own>,
  [own, ...others]: readonly Held<State>[],
): Answer {
  const fixed = own?.fixed ?? [];
  const adopted = others.map((held) => ({ worker: held.worker, digest: holdingDigest(digestsOf(kind, held.fixed)) }));
  const digest = holdingDigest(digestsOf(kind, fixed));
  return { digest, sessions: fixed.length, ...(adopted.length > 0 && { adopted }) };
}

function installed(sessions: readonly Episode[], rebuilt: readonly SessionEvent[]): Answer {
  const marks = rebuilt.filter(({ type }) => type === "session.restart_marked");
  const marked = new Set(marks.map(({ data }) => nameOf(data)));
  const isMarked = (episode: Episode) => marked.has(keyOf(episode));
  const episodes = sessions.map(({ rollout, attempt }) => ({ rollout, attempt }));
  return { installed: episodes.filter((episode) => !isMarked(episode)), restarts: episodes.filter(isMarked) };
}

/** The episode that an event of a hook is about. */
function nameOf({ rollout, attempt }: { readonly rollout?: unknown; readonly attempt?: unknown }): string {
  return `${String(rollout)}/${String(attempt)}`;
}

function restoredEvent<State, Own extends SessionEvent>(
  { spec: { kind }, options }: Participant<State, Own>,
  session: Session<State> & { readonly worker: string },
  named: { readonly source: string; readonly checkpointId: string },
): ParticipantEvent {
  const { rollout, attempt, from, worker } = session;
  const data = { rollout, attempt, from: from?.attempt ?? 0, digest: sessionDigest(kind, session), ...named };
  return { type: "session.restored", data: worker === options.worker ? data : { ...data, worker } };
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
  signal.throwIfAborted();
  await participant.admission.settled(isMarked, signal); // a seed that was asked for before may still make a session
  const retired = participant.sessions
    .all()
    .filter(isMarked)
    .map(({ rollout, attempt }): ParticipantEvent => ({ type: "session.retired", data: { rollout, attempt } }));
  if (freed.length + retired.length > 0) await participant.obey([...freed, ...retired]);
  return {};
}

/** Frees external state that only dropped checkpoints need; who exports nothing has none. */
export async function release<State, Own extends SessionEvent>(
  participant: Participant<State, Own>,
  { kept = [], dropped = [] }: Ask,
  signal: AbortSignal,
): Promise<Answer> {
  if (participant.spec.mode !== "exported") return {};
  const freed = (await participant.hooks.release?.({ kept, dropped }, signal)) ?? [];
  signal.throwIfAborted();
  if (freed.length > 0) await participant.obey(freed);
  return {};
}
