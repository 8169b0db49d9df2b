/**
 * The ask to prepare: admission has closed with it; waits for what is not at a boundary, and says what a checkpoint can hold.
 *
 * An attempt that is refused is over, also while its session is still here: it is neither waited for nor named.
 */
import type { Ask } from "@holdpoint/checkpoint";
import { HoldpointError } from "@holdpoint/errors";
import { type Blocker, type Episode, maxNamedBlockers, type Problem } from "@holdpoint/schemas";
import { isAtBoundary, type Session, type SessionEvent } from "@holdpoint/session";
import type { Answer } from "./obedience.ts";
import type { Participant } from "./participant.ts";
import { problemOf } from "./rpc-server.ts";

/** Returns when nothing blocks, or with the blockers and `deadline_exceeded` when the signal is aborted. */
export async function prepare<State, Own extends SessionEvent>(
  participant: Participant<State, Own>,
  _ask: Ask,
  signal: AbortSignal,
): Promise<Answer> {
  for (;;) {
    const problem = await waited(participant, signal);
    const blockers = blockersOf(participant);
    if (problem === undefined && blockers.length > 0) continue; // lost again before it was looked at
    const sessions = standing(participant);
    return {
      blockers: blockers.slice(0, maxNamedBlockers),
      blockerCount: blockers.length,
      restarts: restartsOf(participant),
      continued: sessions.filter((session) => isCapturable(participant, session)).map((session) => episodeOf(session)),
      ...(problem !== undefined && { problem }),
    };
  }
}

/** @returns why it was not waited for to the end; undefined: nothing blocks */
async function waited<State, Own extends SessionEvent>(
  participant: Participant<State, Own>,
  signal: AbortSignal,
): Promise<Problem | undefined> {
  try {
    await participant.admission.readiness.until(() => isReady(participant), signal);
    return undefined;
  } catch (error) {
    if (!HoldpointError.is(error)) throw error;
    return problemOf(error);
  }
}

/** Whether nothing blocks, without saying what does. */
function isReady<State, Own extends SessionEvent>(participant: Participant<State, Own>): boolean {
  return blocking(participant).next().done === true;
}

/** What keeps a checkpoint from holding this participant now. */
export function blockersOf<State, Own extends SessionEvent>(participant: Participant<State, Own>): readonly Blocker[] {
  return [...blocking(participant)];
}

function* blocking<State, Own extends SessionEvent>(participant: Participant<State, Own>): Generator<Blocker> {
  const { spec, sessions, admission, clock, hooks } = participant;
  if (spec.mode === "restart_only") return;
  for (const session of sessions.live()) {
    if (admission.isRefused(session)) continue;
    if (isAtBoundary(session.status) || !isCapturable(participant, session)) continue;
    yield { ...episodeOf(session), reason: "running", sinceMs: clock.nowMs() };
  }
  const inFlight = [...admission.blockers(), ...(hooks.blockers?.() ?? [])];
  for (const blocker of inFlight) if (!isPassedOver(participant, blocker)) yield blocker;
}

/** The sessions whose attempts are not refused. */
function standing<State, Own extends SessionEvent>({
  sessions,
  admission,
}: Participant<State, Own>): readonly Session<State>[] {
  return sessions.all().filter((session) => !admission.isRefused(session));
}

/** A restart is never waited for, whatever of it is in flight; neither is what was retired. */
function isPassedOver<State, Own extends SessionEvent>(
  { sessions, admission }: Participant<State, Own>,
  episode: Episode,
): boolean {
  if (admission.isRefused(episode)) return true;
  return admission.isExcluded(episode) || sessions.get(episode)?.status.restart === true;
}

export function isCapturable<State, Own extends SessionEvent>(
  { spec, admission }: Participant<State, Own>,
  session: Session<State>,
): boolean {
  return spec.mode !== "restart_only" && !session.status.restart && !admission.isExcluded(session);
}

function restartsOf<State, Own extends SessionEvent>(participant: Participant<State, Own>): Episode[] {
  const { admission, sessions } = participant;
  const marked = standing(participant).filter((session) => !isCapturable(participant, session));
  const isSeeding = (episode: Episode) => sessions.get(episode) === undefined && !admission.isRefused(episode);
  const seeding = admission.excluded.filter(isSeeding);
  return [...marked, ...seeding].map((episode) => episodeOf(episode));
}

function episodeOf({ rollout, attempt }: Episode): Episode {
  return { rollout, attempt };
}
