/** The ask to prepare: admission has closed with it; waits for what is not at a boundary, and says what a checkpoint can hold. */
import type { Ask } from "@holdpoint/checkpoint";
import { type Blocker, type Episode, maxNamedBlockers } from "@holdpoint/schemas";
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
  const problem = await participant.admission.readiness
    .until(() => isReady(participant), signal)
    .then(() => undefined, problemOf);
  const blockers = blockersOf(participant);
  const sessions = participant.sessions.all();
  return {
    blockers: blockers.slice(0, maxNamedBlockers),
    blockerCount: blockers.length,
    restarts: restartsOf(participant),
    continued: sessions.filter((session) => isCapturable(participant, session)).map((session) => episodeOf(session)),
    ...(problem !== undefined && { problem }),
  };
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
    if (isAtBoundary(session.status) || !isCapturable(participant, session)) continue;
    yield { ...episodeOf(session), reason: "running", sinceMs: clock.nowMs() };
  }
  yield* admission.blockers();
  for (const blocker of hooks.blockers?.() ?? []) if (!admission.isExcluded(blocker)) yield blocker;
}

export function isCapturable<State, Own extends SessionEvent>(
  { spec, admission }: Participant<State, Own>,
  session: Session<State>,
): boolean {
  return spec.mode !== "restart_only" && !session.status.restart && !admission.isExcluded(session);
}

function restartsOf<State, Own extends SessionEvent>(participant: Participant<State, Own>): Episode[] {
  const marked = participant.sessions.all().filter((session) => !isCapturable(participant, session));
  const seeding = participant.admission.excluded.filter((episode) => participant.sessions.get(episode) === undefined);
  return [...marked, ...seeding].map((episode) => episodeOf(episode));
}

function episodeOf({ rollout, attempt }: Episode): Episode {
  return { rollout, attempt };
}
