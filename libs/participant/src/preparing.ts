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
    .until(() => blockersOf(participant).length === 0, signal)
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

/** What keeps a checkpoint from holding this participant now. */
export function blockersOf<State, Own extends SessionEvent>(participant: Participant<State, Own>): readonly Blocker[] {
  if (participant.spec.mode === "restart_only") return [];
  const running = participant.sessions
    .all()
    .filter((session) => !isAtBoundary(session.status) && isCapturable(participant, session))
    .map((session) => ({ ...episodeOf(session), reason: "running", sinceMs: participant.clock.nowMs() }));
  const hooked = participant.hooks.blockers?.() ?? [];
  return [...running, ...participant.admission.blockers(), ...hooked].filter(
    (blocker) => !participant.admission.isExcluded(blocker),
  );
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
