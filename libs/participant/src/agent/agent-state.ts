/** What the agent holds of an episode: what it was seeded with, and what its activation has come to, as deltas. */
import type { Recorded } from "@holdpoint/eventsourcing";
import type { Content, Digest, Edges, LogEventOf } from "@holdpoint/schemas";
import type { SessionKind } from "@holdpoint/session";
import type { Participant } from "../participant.ts";
import { afterCall, afterTool, noSteps, type Position, start, type Steps, stepsAfter, withStep } from "./steps.ts";

export interface AgentState {
  readonly sessionId: string;
  readonly seed: Content;
  /** It was seeded with access to its tools. What that is, is written nowhere. */
  readonly granted: boolean;
  readonly started: boolean;
  /** What its activation asks the model with; null where none was started, or an old log does not say. */
  readonly policyVersion: number | null;
  /** What the activation gave; null until it has ended. */
  readonly output: Content | null;
  /** What it can be continued with, as its author said, and where; null: from the start. */
  readonly continuation: (Position & { readonly boundary: Content }) | null;
  /** Since the continuation. */
  readonly steps: Steps;
  readonly position: Position;
  /** The model call that was asked and not received. */
  readonly awaited: { readonly turn: number; readonly request: Digest } | null;
  /** It was let go on from where it was parked, and has said nothing since: any step may be under way. */
  readonly isLetGo: boolean;
  readonly calls: { readonly received: number; readonly last: Digest | null };
  readonly tools: { readonly received: number; readonly last: Digest | null };
  /** A digest over everything that was said so far. */
  readonly chain: string;
  /** A harness was launched. `handle` is null where that was an earlier attempt's. */
  readonly harness: { readonly handle: string | null } | null;
  /** Why no checkpoint can hold it. */
  readonly restart: string | null;
}

/** What stands on the log of an agent. */
export type AgentLogEvent = LogEventOf<"agent">;

export type AgentParticipant = Participant<AgentState, AgentLogEvent>;

/**
 * Sessions of an agent.
 *
 * @param hash what a chain is made with
 * @param options `isOpaque`: it does not see the calls that are made, so it says nothing of them at a cut
 */
export function agentKind(
  hash: (text: string) => Digest,
  { isOpaque }: { readonly isOpaque: boolean },
): SessionKind<AgentState, AgentLogEvent> {
  return {
    open: (event) => (event.type === "session.seeded" ? seeded(event.data) : undefined),
    evolve: (state, event, _recorded: Recorded<AgentLogEvent>) => evolve(state, event, hash),
    fix: (state) => ({ ...state, awaited: null, isLetGo: false, harness: state.harness && { handle: null } }),
    summary,
    edges: ({ calls, tools }): Edges => (isOpaque ? {} : { calls, tools }),
  };
}

function seeded({ sessionId, seed, granted = false }: SeededData): AgentState {
  const none = { received: 0, last: null };
  return {
    sessionId,
    seed,
    granted,
    started: false,
    policyVersion: null,
    output: null,
    continuation: null,
    steps: noSteps,
    position: start,
    awaited: null,
    isLetGo: false,
    calls: none,
    tools: none,
    chain: "",
    harness: null,
    restart: null,
  };
}

type SeededData = Extract<AgentLogEvent, { type: "session.seeded" }>["data"];

/** What is only sometimes there stands at the end, where it is: a digest of before says the same as ever. */
function summary({ sessionId, seed, started, output, calls, tools, chain, ...more }: AgentState): unknown {
  const said = [sessionId, seed.digest, started, output?.digest ?? null, calls.received, tools.received, chain];
  const { continuation, harness } = more;
  if (continuation === null && harness === null) return said;
  const { turn, index, boundary } = continuation ?? { turn: 0, index: 0, boundary: undefined };
  return [...said, { turn, index, boundary: boundary?.digest ?? null, harness: harness !== null }];
}

function evolve(state: AgentState, event: AgentLogEvent, hash: (text: string) => Digest): AgentState {
  switch (event.type) {
    case "activation.started":
      return { ...state, started: true, policyVersion: event.data.policyVersion ?? null };
    case "call.requested":
      return { ...state, awaited: { turn: event.data.turn, request: event.data.request }, isLetGo: false };
    case "call.received":
      return received(state, event.data, hash);
    case "tool.returned":
      return returned(state, event.data, hash);
    case "activation.ended":
      return { ...state, output: event.data.output };
    default:
      return bound(state, event);
  }
}

/** What ties a session to what is outside of it. */
function bound(state: AgentState, event: AgentLogEvent): AgentState {
  switch (event.type) {
    case "session.seeded": // again, by a replacement attempt: its seed and its access may be others
      return { ...state, seed: event.data.seed, granted: event.data.granted ?? false };
    case "boundary.exported":
      return exported(state, event.data);
    case "harness.launched":
      return { ...state, harness: { handle: event.data.handle } };
    case "session.restart_marked":
      return { ...state, restart: event.data.why };
    case "session.parked":
      return { ...state, isLetGo: false };
    case "session.unparked":
      return { ...state, isLetGo: true };
    default:
      return state;
  }
}

function received(
  state: AgentState,
  { turn, response }: { readonly turn: number; readonly response: Content },
  hash: (text: string) => Digest,
): AgentState {
  const request = state.awaited?.turn === turn ? state.awaited.request : null;
  return {
    ...state,
    awaited: null,
    isLetGo: false,
    steps: withStep(state.steps, { kind: "call", turn, request, response }),
    position: afterCall(state.position),
    calls: { received: state.calls.received + 1, last: response.digest },
    chain: hash(`${state.chain} call ${response.digest}`),
  };
}

type Returned = Extract<AgentLogEvent, { type: "tool.returned" }>["data"];

function returned(state: AgentState, data: Returned, hash: (text: string) => Digest): AgentState {
  const { turn, index, result, name = null, arguments: input = null } = data;
  return {
    ...state,
    isLetGo: false,
    steps: withStep(state.steps, { kind: "tool", turn, index, name, arguments: input, result }),
    position: afterTool(state.position),
    tools: { received: state.tools.received + 1, last: result.digest },
    chain: hash(`${state.chain} tool ${result.digest}`),
  };
}

type Exported = Extract<AgentLogEvent, { type: "boundary.exported" }>["data"];

function exported(state: AgentState, { turn, index = 0, boundary }: Exported): AgentState {
  return { ...state, continuation: { turn, index, boundary }, steps: stepsAfter(state.steps, { turn, index }) };
}
