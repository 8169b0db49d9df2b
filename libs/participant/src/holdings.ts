/** What a participant says it held in a checkpoint: a digest over its sessions, whatever their order. */
import type { Digest, Episode } from "@holdpoint/schemas";
import { keyOf, type Session, type SessionEvent, type SessionKind } from "@holdpoint/session";
import { sha256 } from "./hash.ts";

/** The digest of one session: of the summary of what a checkpoint holds of its state. */
export function sessionDigest<State, E extends SessionEvent>(
  kind: SessionKind<State, E>,
  { state }: Session<State>,
): Digest {
  return sha256(JSON.stringify(kind.summary(kind.fix(state))));
}

/** The digest over all sessions, from the digests of each: `digests` names them by session. */
export function holdingDigest(digests: ReadonlyMap<Episode, Digest>): Digest {
  const lines = [...digests].map(([session, digest]) => `${keyOf(session)} ${digest}`);
  return sha256(lines.toSorted().join("\n"));
}

/** The digest of each of `sessions`. */
export function digestsOf<State, E extends SessionEvent>(
  kind: SessionKind<State, E>,
  sessions: readonly Session<State>[],
): ReadonlyMap<Session<State>, Digest> {
  return new Map(sessions.map((session) => [session, sessionDigest(kind, session)]));
}
