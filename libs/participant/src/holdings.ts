/** What a participant says it held in a checkpoint: a digest over its sessions, whatever their order. */
import type { Digest } from "@holdpoint/schemas";
import { keyOf, type Session, type SessionEvent, type SessionKind } from "@holdpoint/session";
import { sha256 } from "./hash.ts";

/** The digest of one session: of its status but for being parked, and of its state's summary. */
export function sessionDigest<State, E extends SessionEvent>(
  kind: SessionKind<State, E>,
  { state }: Session<State>,
): Digest {
  return sha256(JSON.stringify(kind.summary(kind.fix(state))));
}

/** The digest over all of `sessions`. */
export function holdingDigest<State, E extends SessionEvent>(
  kind: SessionKind<State, E>,
  sessions: readonly Session<State>[],
): Digest {
  const lines = sessions.map((session) => `${keyOf(session)} ${sessionDigest(kind, session)}`);
  return sha256(lines.toSorted().join("\n"));
}
