/**
 * What the agent holds of an episode: its conversation, as deltas in the order in which they came.
 *
 * A value that shares its past: adding a turn costs the same whatever came before, and so does fixing it for a checkpoint.
 */
import type { Recorded } from "@holdpoint/eventsourcing";
import type { AgentEvent, Content, Digest, Edges, ParticipantEvent } from "@holdpoint/schemas";
import type { SessionKind } from "@holdpoint/session";

/** A model's response, and the results of its tool calls so far, the latest first. */
export interface Turn {
  readonly turn: number;
  readonly response: Content;
  readonly results: Results | null;
  readonly resultCount: number;
  readonly before: Turn | null;
}

interface Results {
  readonly result: Content;
  readonly before: Results | null;
}

export interface Conversation {
  readonly sessionId: string;
  readonly seed: Content;
  readonly started: boolean;
  /** What its activation asks the model with; null where none was started, or an old log does not say. */
  readonly policyVersion: number | null;
  /** What the activation gave; null until it has ended. */
  readonly output: Content | null;
  readonly last: Turn | null;
  /** The model call that was asked and not received. */
  readonly awaited: { readonly turn: number; readonly request: Digest } | null;
  readonly calls: { readonly received: number; readonly last: Digest | null };
  readonly tools: { readonly received: number; readonly last: Digest | null };
  /** A digest over everything that was said so far. */
  readonly chain: string;
}

type Event = AgentEvent | ParticipantEvent;

/** Conversations as sessions of the agent. @param hash what a chain is made with */
export function conversationKind(hash: (text: string) => Digest): SessionKind<Conversation, Event> {
  return {
    open: (event) => (event.type === "session.seeded" ? seeded(event.data) : undefined),
    evolve: (state, event, _recorded: Recorded<Event>) => evolve(state, event, hash),
    fix: (state) => ({ ...state, awaited: null }),
    summary: ({ sessionId, seed, started, output, calls, tools, chain }) => [
      sessionId,
      seed.digest,
      started,
      output?.digest ?? null,
      calls.received,
      tools.received,
      chain,
    ],
    edges: ({ calls, tools }): Edges => ({ calls, tools }),
  };
}

function seeded({ sessionId, seed }: { readonly sessionId: string; readonly seed: Content }): Conversation {
  const none = { received: 0, last: null };
  return {
    sessionId,
    seed,
    started: false,
    policyVersion: null,
    output: null,
    last: null,
    awaited: null,
    calls: none,
    tools: none,
    chain: "",
  };
}

function evolve(state: Conversation, event: Event, hash: (text: string) => Digest): Conversation {
  switch (event.type) {
    case "activation.started":
      return { ...state, started: true, policyVersion: event.data.policyVersion ?? null };
    case "call.requested":
      return { ...state, awaited: { turn: event.data.turn, request: event.data.request } };
    case "call.received":
      return received(state, event.data, hash);
    case "tool.returned":
      return returned(state, event.data.result, hash);
    case "activation.ended":
      return { ...state, output: event.data.output };
    default: // a repeated seed re-binds; it changes nothing of what was said
      return state;
  }
}

function received(
  state: Conversation,
  { turn, response }: { readonly turn: number; readonly response: Content },
  hash: (text: string) => Digest,
): Conversation {
  return {
    ...state,
    awaited: null,
    last: { turn, response, results: null, resultCount: 0, before: state.last },
    calls: { received: state.calls.received + 1, last: response.digest },
    chain: hash(`${state.chain} call ${response.digest}`),
  };
}

function returned(state: Conversation, result: Content, hash: (text: string) => Digest): Conversation {
  if (state.last === null) return state;
  const { results, resultCount } = state.last;
  return {
    ...state,
    last: { ...state.last, results: { result, before: results }, resultCount: resultCount + 1 },
    tools: { received: state.tools.received + 1, last: result.digest },
    chain: hash(`${state.chain} tool ${result.digest}`),
  };
}

/** The turns, oldest first, each with its results in order. */
export function turnsOf({
  last,
}: Conversation): readonly { readonly response: Content; readonly results: readonly Content[] }[] {
  const turns: { response: Content; results: readonly Content[] }[] = [];
  for (let turn = last; turn !== null; turn = turn.before) {
    turns.push({ response: turn.response, results: resultsOf(turn) });
  }
  return turns.toReversed();
}

function resultsOf(turn: Turn): readonly Content[] {
  const results: Content[] = [];
  for (let entry = turn.results; entry !== null; entry = entry.before) results.push(entry.result);
  return results.toReversed();
}
