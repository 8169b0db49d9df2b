/**
 * The fold of commands (L11): they wait in stream order; an accepted one is under way until its outcome is in the log. A message
 * on its outcome subject ends a command whatever it says: it is written once.
 */
import type { Outcome } from "@holdpoint/schemas";
import type { DataOf, Handlers, Place } from "./handlers.ts";
import { deadlineOf, idOf, keyOfOrder, keyWithoutScope } from "./orders.ts";
import type { AskRecord, CoordinatorState, Op, Queued } from "./state.ts";

/** What a command has for its clean-up, at least, when its own time is over, in milliseconds. */
export const cleanUpMs = 10_000;

/** A command arrived. */
export function commandQueued(state: CoordinatorState, queued: Queued): CoordinatorState {
  state.queue.set(queued.sequence, queued);
  return state;
}

/** The outcome of `command` is in the log: it waits no longer, is under way no longer, and those that joined it have theirs. */
export function commandEnded(state: CoordinatorState, command: number, outcome: Outcome | undefined): CoordinatorState {
  state.queue.delete(command);
  const op = state.ops.get(command);
  if (op === undefined) return state;
  state.ops.delete(command);
  for (const { sequence } of op.asks) state.askers.delete(sequence);
  for (const other of state.ops.values()) {
    if (other.joins === command) state.ops.set(other.command, { ...other, joinedOutcome: outcome ?? lost(op) });
  }
  if (outcome?.ok === true) return succeeded(state, op, outcome);
  return outcome?.operation === "prepare" ? stalled(state, op, outcome) : state;
}

function lost({ command, order }: Op): Outcome {
  const problem = {
    code: "unavailable" as const,
    message: `the outcome of command ${command} cannot be read; try again`,
  };
  return { ok: false, command, operation: order.operation, problem };
}

/** The recorded success answers the same command until resume. */
function succeeded(state: CoordinatorState, { order }: Op, { result }: Outcome & { ok: true }): CoordinatorState {
  const { open } = state;
  const key = keyWithoutScope(order);
  if (open === undefined || idOf(order) !== open.checkpointId) return state;
  const successes = new Map(open.successes).set(order.operation, { key, result });
  return { ...state, open: { ...open, successes } };
}

/** Status shows what blocks until a prepare gets ready. */
function stalled(state: CoordinatorState, { order }: Op, { result }: Outcome & { ok: false }): CoordinatorState {
  const { open } = state;
  if (open === undefined || idOf(order) !== open.checkpointId) return state;
  const { blockers, blockerCount, failures } = result ?? {};
  const stall = {
    ...(blockers !== undefined && { blockers }),
    ...(blockerCount !== undefined && { blockerCount }),
    ...(failures !== undefined && { failures }),
  };
  return { ...state, open: { ...open, stalled: stall } };
}

function accepted(state: CoordinatorState, { command, joins }: DataOf<"command.accepted">): CoordinatorState {
  const queued = state.queue.get(command);
  state.queue.delete(command);
  if (queued?.read.ok !== true) return state;
  const { command: order } = queued.read;
  state.ops.set(command, {
    command,
    order,
    key: keyOfOrder(order),
    joins,
    joinedOutcome: undefined,
    atMs: queued.atMs,
    sender: queued.sender,
    deadlineAtMs: deadlineOf(order, queued.atMs),
    timedOut: false,
    failure: undefined,
    past: undefined,
    asks: [],
  });
  return state;
}

/** Changes the command under way, if it is. */
function changed(state: CoordinatorState, command: number | null, change: (op: Op) => Op): CoordinatorState {
  const op = command === null ? undefined : state.ops.get(command);
  if (op !== undefined) state.ops.set(op.command, change(op));
  return state;
}

function asked(
  state: CoordinatorState,
  data: DataOf<"participants.asked">,
  { sequence, timeMs }: Place,
): CoordinatorState {
  const { command, operation, roles, remainingMs } = data;
  const ask: AskRecord = {
    sequence,
    operation,
    roles,
    askedAtMs: timeMs,
    remainingMs,
    answers: new Map(),
    passed: false,
  };
  if (operation === "capture") state.captures.clear();
  if (state.ops.has(command)) state.askers.set(sequence, command);
  return changed(state, command, (op) => ({ ...op, asks: [...op.asks, ask] }));
}

function passed(op: Op, at: number | undefined): Op {
  if (at === undefined) return { ...op, timedOut: true };
  return { ...op, asks: op.asks.map((ask) => (ask.sequence === at ? { ...ask, passed: true } : ask)) };
}

export const commandHandlers: Handlers<CoordinatorState> = {
  "command.accepted": accepted,
  "command.refused": (state, { command }) => {
    state.queue.delete(command);
    return state;
  },
  "command.answered": (state, { command }) => {
    state.queue.delete(command);
    return state;
  },
  "participants.asked": asked,
  "deadline.passed": (state, { command, asked: at }) => changed(state, command, (op) => passed(op, at)),
  "command.failed": (state, { command, problem }) => changed(state, command, (op) => ({ ...op, failure: problem })),
  "restore.failed": (state, { command, problem }) => changed(state, command, (op) => ({ ...op, failure: problem })),
  /** A command that resumes at its end has time for that, whatever it has used up before. */
  "checkpoint.resumed": (state, { command, checkpointId }, { timeMs }) => {
    const past = state.open?.checkpointId === checkpointId ? state.open : undefined;
    const deadlineAtMs = timeMs + cleanUpMs;
    return changed(state, command, (op) => ({ ...op, past, deadlineAtMs: Math.max(op.deadlineAtMs, deadlineAtMs) }));
  },
};
