/** The asks to capture and to commit: the sessions' state is fixed in the log, then made durable outside it. */
import type { Ask, Obligation } from "@holdpoint/checkpoint";
import { HoldpointError } from "@holdpoint/errors";
import type { Episode, ParticipantEvent } from "@holdpoint/schemas";
import type { Session, SessionEvent } from "@holdpoint/session";
import { digestsOf, holdingDigest } from "./holdings.ts";
import type { Answer } from "./obedience.ts";
import type { Participant } from "./participant.ts";
import { blockersOf, isCapturable } from "./preparing.ts";

/**
 * From here the process appends nothing but this, until the cut stands (L4). On a problem the caller lets it go on.
 *
 * @throws HoldpointError `invalid_phase` where readiness was lost
 */
export async function capture<State, Own extends SessionEvent>(
  participant: Participant<State, Own>,
  { ask: { scope = [], checkpointId }, sequence }: Obligation,
  signal: AbortSignal,
): Promise<Answer> {
  if (checkpointId === null) throw new HoldpointError("invalid_request", "a capture names its checkpoint");
  participant.hold(sessionsOf(participant, scope));
  await participant.freeze();
  signal.throwIfAborted(); // else it would go on after it was let go
  const blockers = blockersOf(participant);
  if (blockers.length > 0) {
    throw new HoldpointError("invalid_phase", `readiness was lost: ${blockers.length} sessions are not at a boundary`);
  }
  const fixed = await participant.hooks.capture?.(sessionsOf(participant, scope), checkpointId, signal);
  signal.throwIfAborted();
  if (fixed !== undefined && fixed.length > 0) await participant.obey(fixed, { urgent: true });
  const sessions = sessionsOf(participant, scope);
  const { kind } = participant.spec;
  const digests = digestsOf(kind, sessions);
  const before = [...digests].map(([{ rollout, attempt, state }, digest]): ParticipantEvent => {
    const data = { rollout, attempt, checkpointId, digest, edges: kind.edges(state), asked: sequence };
    return { type: "session.captured", data };
  });
  return { before, digest: holdingDigest(digests), sessions: sessions.length };
}

function sessionsOf<State, Own extends SessionEvent>(
  participant: Participant<State, Own>,
  scope: readonly Episode[],
): readonly Session<State>[] {
  return scope
    .map((episode) => participant.sessions.get(episode))
    .filter((session) => session !== undefined)
    .filter((session) => isCapturable(participant, session));
}

/** Makes durable what the capture fixed outside the log; who exports nothing has nothing there. */
export async function commit<State, Own extends SessionEvent>(
  participant: Participant<State, Own>,
  { checkpointId, stop = false }: Ask,
  signal: AbortSignal,
): Promise<Answer> {
  if (checkpointId === null) throw new HoldpointError("invalid_request", "a commit names its checkpoint");
  if (participant.spec.mode !== "exported") return {};
  const events = (await participant.hooks.commit?.(checkpointId, { stop }, signal)) ?? [];
  signal.throwIfAborted();
  if (events.length > 0) await participant.obey(events);
  return {};
}
