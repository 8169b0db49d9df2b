/**
 * Which commands may be obeyed now. The order of the questions is part of the protocol:
 *
 *  1. the same command is under way: join it;
 *  2. the id was resumed: `stale_checkpoint`, for ever;
 *  3. another id is open: `checkpoint_conflict`;
 *  4. the same command has succeeded on the open id: its recorded result; with another payload: `checkpoint_conflict`;
 *  5. the phase, and what else is under way: `invalid_phase`;
 *  6. its deadline has passed before it began: `deadline_exceeded`. One that lies further off than any deadline may, either way, is
 *     a mistake, and refused before all of this: `invalid_request`.
 */
import { type Command, maxTimeoutMs, type Operation, Phase, type Problem } from "@holdpoint/schemas";
import { answer, append, control, type Context, type Decision, asProblem, refuse, typed } from "./decision.ts";
import { instantMs } from "./instant.ts";
import { isOver } from "./lease.ts";
import { deadlineOf, idOf, isSameScope, keyOfOrder, keyWithoutScope } from "./orders.ts";
import type { CoordinatorState, Op, Open, Queued } from "./state.ts";

/** Those not listed are allowed in all phases. */
const phasesOf: { readonly [O in Operation]?: readonly Phase[] } = {
  prepare: ["idle", "preparing"],
  renew: ["preparing", "prepared", "captured", "committed", "restored"],
  capture: ["prepared"],
  proceed: ["captured", "committed"],
  commit: ["prepared", "captured"],
  checkpoint: ["idle"],
  restore: ["idle"],
  retire: ["idle", "restored"],
  forget: ["idle", "restored"],
  remove: ["idle", "preparing"],
  release: ["idle"],
};

/** The phases in which an operation is allowed for the first time. */
export function allowedIn(operation: Operation): readonly Phase[] {
  return phasesOf[operation] ?? Phase.options;
}

/** Operations that name the checkpoint they are about; release names one that is over. */
const onOpen: ReadonlySet<Operation> = new Set([
  "prepare",
  "renew",
  "capture",
  "proceed",
  "commit",
  "checkpoint",
  "restore",
]);

/** Obeyed however late: what they raise or open must not depend on time. */
const timeless: ReadonlySet<Operation> = new Set(["resume", "retire", "status", "discover"]);

/** What ends the matter before the operation itself is asked; undefined where it may go on. */
export function fence(context: Context, queued: Queued, order: Command): Decision | undefined {
  const { state } = context;
  const far = farProblem(queued, order);
  if (far !== undefined) return refuse(queued, far);
  const twin = twinOf(state, order);
  if (twin !== undefined) return join(queued, twin);
  if (onOpen.has(order.operation)) {
    const fenced = idFence(context, queued, order);
    if (fenced !== undefined) return fenced;
  }
  const refusal = phaseProblem(state, order) ?? lateProblem(context, queued, order);
  return refusal === undefined ? undefined : refuse(queued, refusal);
}

/** The same command under way, or the one that it joined itself. */
function twinOf({ ops }: CoordinatorState, order: Command): Op | undefined {
  const key = keyOfOrder(order);
  const twin = [...ops.values()].find((op) => op.key === key);
  return twin?.joins === undefined ? twin : ops.get(twin.joins);
}

function join({ sequence }: Queued, { command }: Op): Decision {
  return append(control({ type: "command.accepted", data: { command: sequence, joins: command } }));
}

function idFence({ state, nowMs }: Context, queued: Queued, order: Command): Decision | undefined {
  const id = idOf(order) ?? "";
  if (state.stale.has(id)) return refuse(queued, staleProblem(id));
  if (state.open === undefined) return undefined;
  if (state.open.checkpointId !== id) return refuse(queued, conflictProblem(state, id));
  if (isOver(state.open, nowMs)) return refuse(queued, expiredProblem(id));
  if (hasOtherScope(state.open, order)) return refuse(queued, otherProblem(order, id));
  const recorded = state.open.successes.get(order.operation);
  if (recorded === undefined) return undefined;
  if (recorded.key !== keyWithoutScope(order)) return refuse(queued, otherProblem(order, id));
  return answer(queued.sequence, order.operation, recorded.result);
}

/** Whether the order names other episodes than the cut that stands. */
function hasOtherScope({ captured }: Open, order: Command): boolean {
  if (captured === undefined || (order.operation !== "capture" && order.operation !== "commit")) return false;
  return order.scope !== undefined && !isSameScope(order.scope, captured.scope);
}

function otherProblem({ operation }: Command, id: string): Problem {
  const words = `${id} was fixed with another scope or payload; one checkpoint has one: ${operation} under a fresh id`;
  return asProblem("checkpoint_conflict", words);
}

function staleProblem(id: string): Problem {
  return asProblem("stale_checkpoint", `${id} was resumed, which ends it for ever; choose a fresh id`);
}

function expiredProblem(id: string): Problem {
  return asProblem("stale_checkpoint", `the lease of ${id} ran out, which ends it for ever; choose a fresh id`);
}

function conflictProblem({ open, phase, run }: CoordinatorState, id: string): Problem {
  const other = open?.checkpointId ?? "";
  const how = typed(run, "resume", { checkpointId: other, timeoutMs: 30_000 });
  const words = `${other} is open (${phase}), and only one is at a time; to end it before ${id}: ${how}`;
  return asProblem("checkpoint_conflict", words, { checkpointId: other, phase });
}

function phaseProblem(state: CoordinatorState, order: Command): Problem | undefined {
  const { operation } = order;
  const allowed = phasesOf[operation];
  const busy = busyWith(state, operation);
  if (busy !== undefined) return busyProblem(busy, operation);
  if (allowed === undefined || (allowed.includes(state.phase) && !isOtherKind(state, operation))) return undefined;
  const open =
    state.open === undefined ? "nothing is open" : `the ${state.open.kind} ${state.open.checkpointId} is open`;
  const words = `${operation} is allowed in ${allowed.join(" or ")}; the phase is ${state.phase}, ${open}`;
  return asProblem("invalid_phase", words, { phase: state.phase });
}

/** A checkpoint's operations mean nothing to a restore that is open. */
function isOtherKind({ open }: CoordinatorState, operation: Operation): boolean {
  return operation === "prepare" && open?.kind === "restore";
}

/** What excludes each other beside the phase; proceed and commit go side by side, and so do release and whatever else. */
const exclusive: { readonly [O in Operation]?: readonly Operation[] } = {
  prepare: ["prepare", "checkpoint", "restore", "retire", "forget"],
  checkpoint: ["prepare", "checkpoint", "restore", "retire", "forget"],
  restore: ["prepare", "checkpoint", "restore", "retire", "forget"],
  capture: ["capture", "commit", "checkpoint"],
  commit: ["capture", "commit", "checkpoint"],
  proceed: ["proceed", "checkpoint"],
  forget: ["retire", "forget"],
  remove: ["prepare", "checkpoint", "restore", "retire", "forget"],
};

/** A command under way that has to end first. One that only cleans up after its own end is in nobody's way. */
function busyWith({ ops, stale }: CoordinatorState, operation: Operation): Op | undefined {
  const others = exclusive[operation] ?? [];
  return [...ops.values()].find(({ order }) => {
    const id = idOf(order);
    return others.includes(order.operation) && (id === null || !stale.has(id));
  });
}

function busyProblem({ command, order }: Op, operation: Operation): Problem {
  const isSame = order.operation === operation && operation !== "retire" && operation !== "forget";
  const words = `${order.operation}, command ${command}, is being obeyed; wait for its outcome before ${operation}`;
  return asProblem(isSame ? "checkpoint_conflict" : "invalid_phase", words, { command });
}

/** A deadline in seconds instead of milliseconds, of another day, or by a clock that was never set. */
function farProblem({ atMs }: Queued, { deadlineAt, operation }: Command): Problem | undefined {
  if (deadlineAt === undefined || Math.abs(instantMs(deadlineAt) - atMs) <= maxTimeoutMs) return undefined;
  const words = `deadlineAt ${deadlineAt} is more than a day from the arrival of ${operation}; give an instant of the next 24 hours`;
  return asProblem("invalid_request", words, { arrivedAtMs: atMs });
}

function lateProblem({ nowMs }: Context, { atMs }: Queued, order: Command): Problem | undefined {
  if (timeless.has(order.operation) || nowMs < deadlineOf(order, atMs)) return undefined;
  return asProblem(
    "deadline_exceeded",
    `the deadline of ${order.operation} had passed before it could begin; nothing was done`,
  );
}
