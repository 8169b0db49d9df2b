/** Which sessions of a server count, and how seeds are told apart. */
import { isRefused } from "@holdpoint/checkpoint";
import { HoldpointError } from "@holdpoint/errors";
import type { Episode } from "@holdpoint/schemas";
import type { Session, SessionEvent } from "@holdpoint/session";
import type { Participant } from "./participant.ts";

/** The live sessions of attempts that are not refused. */
export function liveSessions<State, Own extends SessionEvent>({
  sessions,
  gate,
}: Participant<State, Own>): readonly Session<State>[] {
  return sessions.all().filter((session) => !isRefused(gate, session));
}

/** The sessions of the restore that is under way: they count once it is installed. */
export function pendingSessions<State, Own extends SessionEvent>({
  gate: { closed },
  sessions,
}: Participant<State, Own>): readonly Session<State>[] {
  return closed === undefined ? [] : sessions.pendingOf(closed.checkpointId);
}

/**
 * One attempt of a rollout is live at a time; a restored one that nobody has claimed is not passed over.
 *
 * @throws HoldpointError `stale_attempt` where a later attempt is live, `session_conflict` where an earlier one is
 */
export function refuseBeside<State, Own extends SessionEvent>(
  participant: Participant<State, Own>,
  { rollout, attempt }: Episode,
): void {
  const other = participant.sessions.of(rollout).find((session) => !isRefused(participant.gate, session));
  if (other === undefined) return;
  if (other.attempt > attempt) {
    throw new HoldpointError("stale_attempt", `${rollout} is already at attempt ${other.attempt}`);
  }
  throw new HoldpointError(
    "session_conflict",
    `attempt ${other.attempt} of ${rollout} is live: seed that attempt, or retire it first`,
    { details: { rollout, attempt: other.attempt } },
  );
}

/** Why the work of a session is called off when it ends. */
export function sessionOver({ rollout, attempt }: Episode): HoldpointError {
  return new HoldpointError("stale_attempt", `the session of ${rollout}, attempt ${attempt}, is over`, {
    details: { rollout, attempt },
  });
}

/** JSON whose text does not depend on the order in which its fields were written. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === "object" && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).toSorted(([one], [other]) => (one < other ? -1 : 1)))
      : inner,
  );
}
