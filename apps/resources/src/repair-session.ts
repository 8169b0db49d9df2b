/**
 * What the resources server holds of an episode: its sandbox, what was done in it, and the snapshot that a checkpoint names.
 *
 * A value that shares its past: one more call costs the same whatever came before, and so does fixing it for a checkpoint.
 * Of results only the latest rests here; the others are known by their place in the log.
 */
import type { Recorded } from "@holdpoint/eventsourcing";
import type { SnapshotReference } from "@holdpoint/sandbox";
import type { Content, Digest, Edges, ParticipantEvent, ResourcesEvent } from "@holdpoint/schemas";
import type { SessionKind } from "@holdpoint/session";

/** The name of a tool call, and what it asks. */
export interface ToolCall {
  readonly turn: number;
  readonly index: number;
  readonly name: string;
  readonly arguments: Digest;
}

interface StartedCall extends ToolCall {
  /** Taken before it, to roll it back; null: it changes nothing. */
  readonly snapshot: SnapshotReference | null;
}

export interface FinishedCall extends ToolCall {
  /** Of its result. */
  readonly digest: Digest;
  /** Where its result rests in the log. */
  readonly sequence: number;
  readonly before: FinishedCall | null;
}

interface CheckpointSnapshot extends SnapshotReference {
  readonly checkpointId: string;
}

export interface RepairSession {
  readonly sessionId: string;
  readonly seed: Content;
  /** null: none was lent. */
  readonly sandbox: string | null;
  /** How many calls have finished, and the digest of the latest result. */
  readonly calls: { readonly received: number; readonly last: Digest | null };
  readonly latest: FinishedCall | null;
  readonly latestResult: Content | null;
  /** A call that has not ended: after a crash it is rolled back. */
  readonly started: StartedCall | null;
  /** Taken to roll back the call that starts next. */
  readonly before: SnapshotReference | null;
  /** The latest that was taken for a checkpoint. */
  readonly snapshot: CheckpointSnapshot | null;
  readonly verdict: Content | null;
  /** Why the sandbox is no more, where it was lost: the episode has to start over. */
  readonly lost: string | null;
  /** A digest over all calls and results so far. */
  readonly chain: string;
}

type Event = ResourcesEvent | ParticipantEvent;
type Data<Type extends Event["type"]> = Extract<Event, { type: Type }>["data"];

/** The sessions of the resources server. @param hash what a chain is made with */
export function repairKind(hash: (text: string) => Digest): SessionKind<RepairSession, Event> {
  return {
    open: (event) => (event.type === "session.seeded" ? seeded(event.data) : undefined),
    evolve: (state, event, recorded) => evolve(state, event, { hash, recorded }),
    fix: (state) => state,
    summary: (state) => [
      state.sessionId,
      state.seed.digest,
      state.sandbox,
      state.calls.received,
      state.chain,
      state.started?.turn ?? null,
      state.snapshot?.snapshotId ?? null,
      state.snapshot?.digest ?? null,
      state.verdict?.digest ?? null,
      state.lost,
    ],
    edges: ({ calls }): Edges => ({ tools: calls }),
  };
}

function seeded({ sessionId, seed, sandbox }: Data<"session.seeded">): RepairSession {
  return {
    sessionId,
    seed,
    sandbox,
    calls: { received: 0, last: null },
    latest: null,
    latestResult: null,
    started: null,
    before: null,
    snapshot: null,
    verdict: null,
    lost: null,
    chain: "",
  };
}

interface Place {
  readonly hash: (text: string) => Digest;
  readonly recorded: Recorded<Event>;
}

function evolve(state: RepairSession, event: Event, place: Place): RepairSession {
  switch (event.type) {
    case "sandbox.lent":
      return { ...state, sandbox: event.data.sandbox, started: null, before: null };
    case "snapshot.taken":
      return taken(state, event.data);
    case "tool.started":
      return started(state, event.data);
    case "tool.finished":
      return finished(state, event.data, place);
    case "verify.finished":
      return { ...state, verdict: event.data.verdict };
    case "session.restart_marked":
      return { ...state, lost: event.data.why };
    default: // a repeated seed claims the session; it changes nothing of what was done
      return state;
  }
}

function taken(state: RepairSession, data: Data<"snapshot.taken">): RepairSession {
  const { snapshot: snapshotId, digest, provider = "", checkpointId } = data;
  const reference = { provider, snapshotId, digest };
  return checkpointId === null
    ? { ...state, before: reference }
    : { ...state, snapshot: { ...reference, checkpointId } };
}

function started(state: RepairSession, data: Data<"tool.started">): RepairSession {
  const { turn, index, name, arguments: input } = data;
  return { ...state, started: { turn, index, name, arguments: input, snapshot: snapshotBefore(state, data) } };
}

/** A snapshot that nothing is known of is one that cannot be forked; the call is then never simply run again. */
function snapshotBefore({ before }: RepairSession, { snapshot }: Data<"tool.started">): SnapshotReference | null {
  if (snapshot === null) return null;
  return before?.snapshotId === snapshot ? before : { provider: "", snapshotId: snapshot, digest: "" };
}

function finished(state: RepairSession, data: Data<"tool.finished">, { hash, recorded }: Place): RepairSession {
  const { turn, index, result } = data;
  const { name = "", arguments: input = hash("") } = state.started ?? {};
  const call = { turn, index, name, arguments: input, digest: result.digest };
  return {
    ...state,
    started: null,
    before: null,
    calls: { received: state.calls.received + 1, last: result.digest },
    latest: { ...call, sequence: recorded.sequence, before: state.latest },
    latestResult: result,
    chain: hash(`${state.chain} ${turn}/${index} ${name} ${input} ${result.digest}`),
  };
}

/**
 * The call of this name, if it has finished. A new call is known as such by the calls of its own turn alone, since turns only
 * go up; an old one is searched for.
 */
export function finishedCall(
  { latest }: RepairSession,
  { turn, index }: Pick<ToolCall, "turn" | "index">,
): FinishedCall | undefined {
  for (let call = latest; call !== null && call.turn >= turn; call = call.before) {
    if (call.turn === turn && call.index === index) return call;
  }
  return undefined;
}

/** Ids of all snapshots that this session needs: for what its checkpoint names, and to roll back a call. */
export function snapshotsOf({ snapshot, before, started: call }: RepairSession): readonly SnapshotReference[] {
  return [snapshot, before, call?.snapshot ?? null].filter((reference) => reference !== null);
}
