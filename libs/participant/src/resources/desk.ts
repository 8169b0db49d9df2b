/** What the parts of a resources server share. */
import { HoldpointError } from "@holdpoint/errors";
import type { Content, Episode, ResourcesEvent } from "@holdpoint/schemas";
import type { Session } from "@holdpoint/session";
import type { Entrance } from "../admission.ts";
import type { Participant } from "../participant.ts";
import type { Bench, Benches } from "./bench.ts";
import type { Resources } from "./define-resources.ts";
import type { SessionName } from "./external-hooks.ts";
import type { GrantBook } from "./grants.ts";
import { sessionOver } from "../live-sessions.ts";
import { nameOf, type ResourcesSession } from "./resources-session.ts";

export type ResourcesParticipant = Participant<ResourcesSession, ResourcesEvent>;

/** What a call, or a verify, has given. */
export interface Given {
  readonly content: Content;
  readonly isError: boolean;
}

export interface Desk {
  readonly resources: Resources;
  readonly participant: ResourcesParticipant;
  readonly benches: Benches<Bench<Given>>;
  readonly grants: GrantBook | undefined;
  /** An id that is never the same again: `kind`, the episode, and something random. */
  readonly newId: (kind: string, episode: Episode) => string;
}

/** @throws HoldpointError `stale_attempt` where the session has ended, `invalid_checkpoint_state` where it was lost */
export function sessionIn({ participant }: Desk, episode: Episode): Session<ResourcesSession> {
  const session = participant.sessions.get(episode);
  if (session === undefined) throw sessionOver(episode);
  const { lost } = session.state;
  if (lost === null) return session;
  throw cannotGoOn(session, lost);
}

/** Does `work` at the bench of an episode; it leaves none behind where there is no session, or none any more. */
export function atBench<Result>(
  { participant, benches }: Desk,
  episode: Episode,
  work: (bench: Bench<Given>) => Promise<Result>,
): Promise<Result> {
  return benches.at(episode, () => participant.sessions.get(episode) !== undefined, work);
}

/**
 * The session, for work that stands on all that was done before.
 *
 * @throws HoldpointError as `sessionIn` does, and `invalid_checkpoint_state` where what a call did is not known: it is a restart then
 */
export async function soundSessionIn(desk: Desk, episode: Episode): Promise<Session<ResourcesSession>> {
  const session = sessionIn(desk, episode);
  const why = whyLost(desk, session.state);
  if (why === undefined) return session;
  await markLost(desk, session, why);
  throw cannotGoOn(session, why);
}

/** Why a session in which nothing is under way cannot go on: its last call did not end, and may not simply run again (L3). */
export function whyLost({ resources }: Desk, { started, lost }: ResourcesSession): string | undefined {
  if (lost !== null) return lost;
  if (started === null || resources.tools.get(started.name)?.repeats === true) return undefined;
  return `the call ${nameOf(started)} of ${started.name} did not end, and may not run again`;
}

function cannotGoOn({ rollout, attempt }: Episode, why: string): HoldpointError {
  const words = `attempt ${attempt} of ${rollout} cannot go on, and has to start over: ${why}`;
  return new HoldpointError("invalid_checkpoint_state", words, { details: { rollout, attempt } });
}

export function namedSession({ rollout, attempt, state }: Session<ResourcesSession>): SessionName {
  return { rollout, attempt, sessionId: state.sessionId };
}

/** The session cannot go on, and cannot be captured: its episode starts over. */
export async function markLost({ participant }: Desk, { rollout, attempt }: Episode, why: string): Promise<void> {
  await participant.record({ type: "session.restart_marked", data: { rollout, attempt, why } });
}

/** How work comes in that a checkpoint waits for. A server that none can hold is not held up by one. */
export function heldBy({ spec }: ResourcesParticipant): (blocks: string) => Pick<Entrance, "whileClosed" | "blocks"> {
  return (blocks) => (spec.mode === "restart_only" ? { whileClosed: "through" } : { whileClosed: "held", blocks });
}
