/**
 * What one participant process may do, folded from the control subject and its own answers in stream order.
 *
 * Owned here: whether its admission is open, what it still has to obey, what it refuses. Not here: its sessions.
 *
 *  1. Only an event in the log closes or opens admission (L2, L10); a request may wake, never command.
 *  2. Closed by the ask to prepare or restore; open again once the ask to proceed or resume was obeyed, or is over.
 *  3. From its answer to a capture until that cut stands or has failed, the process appends nothing (L4): `fixed`.
 *  4. What is open here has a lease: when nobody resumes it in time, this process says so in its own log, and opens.
 *  5. A resumed id closes nothing ever again, also where it was never open here.
 *
 * A gate belongs to its fold: `evolveGate` and `answered` may change it in place; keep no older one.
 */
import type { Recorded } from "@holdpoint/eventsourcing";
import type { Assignment, ControlEvent, Episode, Role } from "@holdpoint/schemas";
import { applied, type DataOf, type Handlers, type Place } from "./handlers.ts";

/** The data of the event by which participants are asked. */
export type Ask = DataOf<"participants.asked">;

/** An ask that this process has not answered: its answer names `sequence`. */
export interface Obligation {
  readonly sequence: number;
  /** The stream's timestamp of the ask, from which `ask.remainingMs` counts. */
  readonly askedAtMs: number;
  readonly ask: Ask;
}

/** The checkpoint, or restore, for which admission is closed. */
export interface Closure {
  readonly checkpointId: string;
  readonly kind: "checkpoint" | "restore";
}

export interface ParticipantGate {
  readonly role: Role;
  /** How long what is open may last: `untilMs` in stream time. */
  readonly lease: { readonly checkpointId: string; readonly untilMs: number } | undefined;
  readonly closed: Closure | undefined;
  /** Captured, and the cut does not stand yet: nothing may be appended but what obeys `obligationsOf`. */
  readonly fixed: { readonly checkpointId: string; readonly command: number } | undefined;
  /** The open checkpoint whose cut stands: what it captured waits to be let go on. */
  readonly cut: string | undefined;
  /** Asks not answered yet, oldest first. */
  readonly asks: readonly Obligation[];
  /** For each rollout the highest attempt that is refused; all before it are too. */
  readonly marks: Map<string, number>;
  /** Every id that was ever resumed. */
  readonly stale: Set<string>;
  /** The attempts of a restore that is under way: once it is installed, what they continue is superseded. */
  readonly assigned: readonly Assignment[];
}

/** The gate of a process of `role` before anything has happened: open, and owing nothing. */
export function initialGate(role: Role): ParticipantGate {
  const marks = new Map<string, number>();
  return {
    role,
    lease: undefined,
    closed: undefined,
    fixed: undefined,
    cut: undefined,
    asks: [],
    marks,
    stale: new Set(),
    assigned: [],
  };
}

/** The asks to obey now, in this order; while `fixed` only what lifts it, since all else would break the cut (L4). */
export function obligationsOf({ asks, fixed }: ParticipantGate): readonly Obligation[] {
  if (fixed === undefined) return asks;
  return asks.filter(({ ask }) => ask.operation === "capture" && ask.checkpointId === fixed.checkpointId);
}

/** Whether the episode was retired, or superseded by a restore: `stale_attempt` to whoever names it. */
export function isRefused({ marks }: ParticipantGate, { rollout, attempt }: Episode): boolean {
  const mark = marks.get(rollout);
  return mark !== undefined && attempt <= mark;
}

/** Whether the id was resumed at any time: `stale_checkpoint` to whoever names it. */
export function isStale({ stale }: ParticipantGate, checkpointId: string): boolean {
  return stale.has(checkpointId);
}

/** What the gate has to know of an answer of this process, once it is in the log. */
export interface GivenAnswer {
  /** The sequence of the ask that it answers. */
  readonly asked: number;
  readonly problem?: unknown;
}

/** The gate after this process' own answer is in the log. An answer to an ask that is over changes nothing. */
export function answered(gate: ParticipantGate, { asked: at, problem }: GivenAnswer): ParticipantGate {
  const obligation = gate.asks.find(({ sequence }) => sequence === at);
  if (obligation === undefined) return gate;
  const { operation, checkpointId, command } = obligation.ask;
  const rest: ParticipantGate = { ...gate, asks: gate.asks.filter((other) => other !== obligation) };
  if (checkpointId === null) return rest;
  if (operation === "proceed" || operation === "resume") return opened(rest, checkpointId);
  if (operation === "capture" && problem === undefined) return { ...rest, fixed: { checkpointId, command } };
  return rest;
}

/**
 * The stream time at which admission opens by itself; undefined where it is open, or held without a lease. What is closed for an id
 * that was resumed, and has not been asked to serve again yet, goes by the lease of whatever was opened since.
 */
export function leaseEndOf({ closed, lease }: ParticipantGate): number | undefined {
  return closed === undefined ? undefined : lease?.untilMs;
}

/** The gate after this process' own word that the lease of `checkpointId` ran out: it serves again, and the id is stale here. */
export function leaseExpired(gate: ParticipantGate, checkpointId: string): ParticipantGate {
  return opened(resumed(gate, checkpointId), checkpointId);
}

/** The gate after an event on `control`. Events that do not concern it leave it as it is. */
export function evolveGate(gate: ParticipantGate, recorded: Recorded<ControlEvent>): ParticipantGate {
  return applied(handlers, gate, recorded.event, recorded);
}

const handlers: Handlers<ParticipantGate> = {
  "participants.asked": (gate, ask, place) => (ask.roles.includes(gate.role) ? asked(gate, ask, place) : gate),
  "checkpoint.prepared": (gate, { command }) => withoutAsksOf(gate, command),
  "checkpoint.captured": (gate, { command, checkpointId }) =>
    unfixed(standing(withoutAsksOf(gate, command), checkpointId), command),
  "checkpoint.committed": (gate, { command }) => withoutAsksOf(gate, command),
  "checkpoint.proceeded": (gate, { command, checkpointId }) => opened(withoutAsksOf(gate, command), checkpointId),
  "command.failed": (gate, { command }) => unfixed(withoutAsksOf(gate, command), command),
  "lease.moved": (gate, { checkpointId, leaseMs }, { timeMs }) => {
    return { ...gate, lease: { checkpointId, untilMs: timeMs + leaseMs } };
  },
  "checkpoint.resumed": (gate, { checkpointId }) => resumed(gate, checkpointId),
  "resume.ended": (gate, { command, checkpointId }) =>
    opened(command === null ? gate : withoutAsksOf(gate, command), checkpointId),
  "restore.started": (gate, { assignments }) => ({ ...gate, assigned: assignments }),
  "restore.failed": (gate, { command }) => ({ ...withoutAsksOf(gate, command), assigned: [] }),
  "restore.installed": (gate, { command }) => superseded(withoutAsksOf(gate, command)),
  "rollouts.marked": (gate, { rollouts }) => {
    for (const { rollout, attempt } of rollouts) raise(gate.marks, rollout, attempt);
    return gate;
  },
  "rollouts.retired": (gate, { command }) => withoutAsksOf(gate, command),
  "rollouts.forgotten": (gate, { command, rollouts }) => {
    for (const rollout of rollouts) gate.marks.delete(rollout);
    return withoutAsksOf(gate, command);
  },
  "checkpoint.released": (gate, { command }) => withoutAsksOf(gate, command),
};

/** A later ask to prepare or capture the same id takes the place of an earlier one. A stale id is asked only for its end. */
function asked(gate: ParticipantGate, ask: Ask, { sequence, timeMs }: Place): ParticipantGate {
  const { operation, checkpointId } = ask;
  if (checkpointId === null) return owing(gate, { sequence, askedAtMs: timeMs, ask });
  if (gate.stale.has(checkpointId) && !afterwards.has(operation)) return gate;
  const asks = gate.asks.filter((other) => !isSuperseded(other.ask, ask));
  const next = owing({ ...gate, asks }, { sequence, askedAtMs: timeMs, ask });
  if (operation === "prepare") return { ...next, cut: undefined, closed: { checkpointId, kind: "checkpoint" } };
  if (operation === "restore") return { ...next, cut: undefined, closed: { checkpointId, kind: "restore" } };
  if (operation === "capture") return { ...next, fixed: undefined };
  return next;
}

function isSuperseded(earlier: Ask, { operation, checkpointId }: Ask): boolean {
  const isRepeatable = operation === "prepare" || operation === "capture";
  return isRepeatable && earlier.operation === operation && earlier.checkpointId === checkpointId;
}

function owing(gate: ParticipantGate, obligation: Obligation): ParticipantGate {
  return { ...gate, asks: [...gate.asks, obligation] };
}

function withoutAsksOf(gate: ParticipantGate, command: number): ParticipantGate {
  return { ...gate, asks: gate.asks.filter(({ ask }) => ask.command !== command) };
}

/** Nothing is owed any more for an id that is over, but what names it after its end: each resume ends by itself, and so does a release. */
function withoutAsksFor(gate: ParticipantGate, checkpointId: string): ParticipantGate {
  return {
    ...gate,
    asks: gate.asks.filter(({ ask }) => ask.checkpointId !== checkpointId || afterwards.has(ask.operation)),
  };
}

const afterwards: ReadonlySet<string> = new Set(["resume", "release"]);

function unfixed(gate: ParticipantGate, command: number): ParticipantGate {
  return gate.fixed?.command === command ? { ...gate, fixed: undefined } : gate;
}

function standing(gate: ParticipantGate, checkpointId: string): ParticipantGate {
  return gate.closed?.checkpointId === checkpointId ? { ...gate, cut: checkpointId } : gate;
}

function opened(gate: ParticipantGate, checkpointId: string): ParticipantGate {
  return gate.closed?.checkpointId === checkpointId ? { ...gate, closed: undefined, cut: undefined } : gate;
}

/** Admission stays closed until the ask to resume is obeyed: callees open before their callers. */
function resumed(gate: ParticipantGate, checkpointId: string): ParticipantGate {
  gate.stale.add(checkpointId);
  const rest = withoutAsksFor(gate, checkpointId);
  return rest.fixed?.checkpointId === checkpointId ? { ...rest, fixed: undefined } : rest;
}

function superseded(gate: ParticipantGate): ParticipantGate {
  for (const { rollout, to } of gate.assigned) raise(gate.marks, rollout, to - 1);
  return { ...gate, assigned: [] };
}

function raise(marks: Map<string, number>, rollout: string, attempt: number): void {
  marks.set(rollout, Math.max(attempt, marks.get(rollout) ?? -1));
}
