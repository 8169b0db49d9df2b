/**
 * What a resources server holds of an episode: the author's state, the calls that it can answer again, its verdict and its grants.
 *
 * 1. A value that shares its past: one more call costs the same whatever came before, and so does fixing it for a checkpoint.
 * 2. Of a call rests here only by what it is known again, and where its result is in the log.
 * 3. Grants belong to an attempt: a checkpoint holds none.
 */
import { HoldpointError } from "@holdpoint/errors";
import type { Recorded } from "@holdpoint/eventsourcing";
import type { Content, Digest, Edges, Json, ParticipantEvent, Problem, ResourcesEvent } from "@holdpoint/schemas";
import type { SessionKind } from "@holdpoint/session";
import { type CallIndex, callOf, noCalls, withCall } from "./call-index.ts";

/** Who calls, and by what name. */
export interface CallName {
  /** undefined: an agent, by turn and index. */
  readonly caller: "mcp" | undefined;
  /** Of an MCP call: its ordinal among those of the session. */
  readonly turn: number;
  readonly index: number;
  /** What an MCP client calls its call; undefined: the ordinal is all the name it has. */
  readonly key: string | undefined;
}

/** A call, and what it asks. */
export interface ToolCall extends CallName {
  readonly name: string;
  readonly arguments: Digest;
}

export interface FinishedCall extends ToolCall {
  /** Of its result. */
  readonly digest: Digest;
  /** Where its result rests in the log. */
  readonly sequence: number;
}

interface Grant {
  /** Of its token. */
  readonly digest: Digest;
  /** Epoch milliseconds. */
  readonly expiresAtMs: number;
}

export interface ResourcesSession {
  readonly sessionId: string;
  readonly seed: Content;
  /** As the definition's `state` has it. */
  readonly state: Json;
  /** How many direct calls have a result, and the digest of the latest one. */
  readonly calls: { readonly received: number; readonly last: Digest | null };
  /** How many MCP calls have started. */
  readonly mcpCalls: number;
  readonly finished: CallIndex<FinishedCall>;
  /** A call that has not ended. */
  readonly started: ToolCall | null;
  readonly verdict: Content | null;
  /** The live ones, oldest first. */
  readonly grants: readonly Grant[];
  /** What the latest capture said of the external state. */
  readonly exported: { readonly checkpointId: string; readonly reference: Json } | null;
  /** Why it cannot go on, where that is so: the episode has to start over. */
  readonly lost: string | null;
  /** A digest over all calls, changes and results so far. */
  readonly chain: string;
}

/** A session whose client asks for ever more grants keeps the latest: the oldest ends when another one comes. */
const maxGrants = 16;

export type Event = ResourcesEvent | ParticipantEvent;
type Data<Type extends Event["type"]> = Extract<Event, { type: Type }>["data"];

export interface KindOptions {
  readonly hash: (text: string) => Digest;
  /** What a change makes of the author's state. May throw: the session is lost then. */
  readonly evolve: (state: Json, change: Json) => Json;
}

/** The sessions of a resources server. */
export function resourcesKind(options: KindOptions): SessionKind<ResourcesSession, Event> {
  const { hash } = options;
  return {
    open: (event) => (event.type === "session.seeded" ? seeded(event.data) : undefined),
    evolve: (session, event, recorded) => evolve(session, event, { ...options, recorded }),
    fix: (session) => ({ ...session, grants: [] }),
    summary: (session) => [
      session.sessionId,
      session.seed.digest,
      hash(JSON.stringify(session.state)),
      session.calls.received,
      session.mcpCalls,
      session.chain,
      session.started === null ? null : nameOf(session.started),
      session.exported === null ? null : hash(JSON.stringify(session.exported)),
      session.verdict?.digest ?? null,
      session.lost,
    ],
    edges: ({ calls }): Edges => ({ tools: calls }),
  };
}

/** The call of this name, if it has finished. */
export function finishedCall(
  { finished }: ResourcesSession,
  name: CallName,
  hash: (text: string) => Digest,
): FinishedCall | undefined {
  return callOf(finished, hash(nameOf(name)));
}

/** One text for one call of a session. */
export function nameOf({ caller, turn, index, key }: CallName): string {
  if (caller === undefined) return `${turn}/${index}`;
  return key === undefined ? `mcp #${turn}` : `mcp ${key}`;
}

/** The error that a call was refused with. */
export function refusal({ code, message, details }: Problem): HoldpointError {
  return new HoldpointError(code, message, details === undefined ? {} : { details });
}

function seeded({ sessionId, seed, state = null }: Data<"session.seeded">): ResourcesSession {
  return {
    sessionId,
    seed,
    state,
    calls: { received: 0, last: null },
    mcpCalls: 0,
    finished: noCalls,
    started: null,
    verdict: null,
    grants: [],
    exported: null,
    lost: null,
    chain: "",
  };
}

interface Place extends KindOptions {
  readonly recorded: Recorded<Event>;
}

function evolve(session: ResourcesSession, event: Event, place: Place): ResourcesSession {
  switch (event.type) {
    case "tool.started":
      return begun(session, event.data);
    case "tool.finished":
      return ended(session, event.data, place);
    case "verify.finished":
      return { ...session, verdict: event.data.verdict };
    case "grant.issued":
      return granted(session, event.data, place.recorded.timeMs);
    case "state.exported": {
      const { checkpointId, reference } = event.data;
      return { ...session, exported: { checkpointId, reference } };
    }
    case "session.restart_marked":
      return { ...session, lost: event.data.why };
    default: // a repeated seed claims the session; it changes nothing of what was done
      return session;
  }
}

function begun(session: ResourcesSession, data: Data<"tool.started">): ResourcesSession {
  const { caller, turn, index, key, name, arguments: input } = data;
  const mcpCalls = caller === "mcp" ? turn + 1 : session.mcpCalls;
  return { ...session, mcpCalls, started: { caller, turn, index, key, name, arguments: input } };
}

function ended(session: ResourcesSession, data: Data<"tool.finished">, place: Place): ResourcesSession {
  const { result, change, problem } = data;
  const { hash } = place;
  const call = callIn(session, data, place);
  const told = [nameOf(call), call.name, call.arguments, result.digest, change ?? null, problem?.code ?? null];
  const isCounted = call.caller === undefined && problem === undefined;
  const isKnownAgain = (call.caller === undefined || call.key !== undefined) && !mayBeAskedAgain(problem);
  const next = {
    ...session,
    started: null,
    calls: isCounted ? { received: session.calls.received + 1, last: result.digest } : session.calls,
    finished: isKnownAgain ? withCall(session.finished, hash(nameOf(call)), call) : session.finished,
    chain: hash(`${session.chain} ${JSON.stringify(told)}`),
  };
  return change === undefined ? next : changed(next, change, place);
}

/** It did nothing, and under the same name it may yet be done. */
function mayBeAskedAgain(problem: Problem | undefined): boolean {
  return problem !== undefined && refusal(problem).disposition === "retry";
}

function callIn(
  { started }: ResourcesSession,
  { caller, turn, index, result: { digest } }: Data<"tool.finished">,
  { hash, recorded: { sequence } }: Place,
): FinishedCall {
  const { name = "", arguments: input = hash(""), key } = started ?? {};
  return { caller, turn, index, key, name, arguments: input, digest, sequence };
}

/** An author's function that fails on what stands in the log, such as one of a later version, loses this session and no other. */
function changed(session: ResourcesSession, change: Json, { evolve: evolveState }: Place): ResourcesSession {
  try {
    return { ...session, state: evolveState(session.state, change) };
  } catch (error) {
    const kind = error instanceof Error ? error.name : typeof error; // its words may hold secrets
    return { ...session, lost: `its recorded changes cannot be folded: state.evolve threw (${kind})` };
  }
}

function granted(session: ResourcesSession, data: Data<"grant.issued">, nowMs: number): ResourcesSession {
  const live = session.grants.filter(({ expiresAtMs }) => expiresAtMs > nowMs);
  const grants = [...live, { digest: data.grant, expiresAtMs: data.expiresAtMs }].slice(-maxGrants);
  return { ...session, grants };
}
