/**
 * Leases: what is open ends by itself when its controller is gone, so that no hold lasts for ever.
 *
 *  1. Every command that is accepted while something is open moves its lease: to the latest deadline of what is under way for it,
 *     and the grace.
 *  2. When it has run out, the leader commands a resume itself, as a controller would: one way ends every hold.
 *  3. A process serves again by itself when nobody has resumed what is open a little later; it says so in its own log, and from
 *     there on the id is over for everybody.
 */
import type { Command, ControlEvent, Result } from "@holdpoint/schemas";
import { answer, append, type Context, type Decision, type Planned } from "./decision.ts";
import { deadlineOf, idOf, type OrderOf } from "./orders.ts";
import type { CoordinatorState, Open, Queued } from "./state.ts";

/** How long what is open outlives the deadline of its latest command, by default: 10 minutes, in milliseconds. */
export const defaultLeaseGraceMs = 600_000;

/** What a resume that the leader commands has for its time, in milliseconds. */
const resumeTimeoutMs = 30_000;

type LeaseMoved = Extract<ControlEvent, { type: "lease.moved" }>;

/** The lease after `order`, whose acceptance is `queued`: of `checkpointId`, from now on, also where the order comes late. */
function leaseMoved(context: Context, queued: Queued, order: Command, checkpointId: string): LeaseMoved {
  const { state, nowMs, leaseGraceMs } = context;
  const others = [...state.ops.values()].filter((op) => idOf(op.order) === checkpointId);
  const deadlines = [deadlineOf(order, queued.atMs), ...others.map(({ deadlineAtMs }) => deadlineAtMs)];
  const leaseMs = Math.ceil(Math.max(nowMs, ...deadlines) + leaseGraceMs - nowMs);
  return { type: "lease.moved", data: { command: queued.sequence, checkpointId, leaseMs } };
}

/** `decision` about `order`, which moves the lease of what is open, or opened by it, where it accepts it. */
export function movingLease(decision: Decision, context: Context, queued: Queued, order: Command): Decision {
  if (decision.kind !== "append" || !Number.isFinite(deadlineOf(order, queued.atMs))) return decision;
  return { ...decision, messages: decision.messages.map((planned) => withLease(planned, context, queued, order)) };
}

/** Known before anybody is asked for anything. */
function withLease(planned: Planned, context: Context, queued: Queued, order: Command): Planned {
  if (planned.to !== "control" || !planned.events.some(({ type }) => type === "command.accepted")) return planned;
  const checkpointId = openAfter(context.state, planned.events);
  if (checkpointId === undefined) return planned;
  const at =
    1 + planned.events.findLastIndex(({ type }) => type === "command.accepted" || type === "checkpoint.opened");
  return { ...planned, events: planned.events.toSpliced(at, 0, leaseMoved(context, queued, order, checkpointId)) };
}

/** What is open once `events` are in the log. */
function openAfter({ open }: CoordinatorState, events: readonly ControlEvent[]): string | undefined {
  let id = open?.checkpointId;
  for (const { type, data } of events) {
    if (type === "checkpoint.opened") id = data.checkpointId;
    if (type === "checkpoint.resumed" && data.checkpointId === id) id = undefined;
  }
  return id;
}

export function admitRenew(order: OrderOf<"renew">, context: Context, queued: Queued): Decision {
  const moved = leaseMoved(context, queued, order, order.checkpointId);
  const { phase } = context.state;
  const leaseUntilMs = context.nowMs + moved.data.leaseMs;
  const result: Result = { phase, checkpointId: order.checkpointId, leaseUntilMs };
  return answer(queued.sequence, order.operation, result, moved);
}

/** Whether the lease of what is open is over: by the stream's time, or because a process has said so. */
export function isOver({ leaseUntilMs, expired }: Open, nowMs: number): boolean {
  return expired || nowMs >= leaseUntilMs;
}

/** The resume of what is open, once its lease is over; undefined where it is not, or one is on its way already. */
export function leaseEnd({ state, nowMs }: Context): Decision | undefined {
  const { open } = state;
  if (open === undefined || !isOver(open, nowMs) || resumeOf(state, open) !== undefined) return undefined;
  const body = { checkpointId: open.checkpointId, timeoutMs: resumeTimeoutMs };
  return append({ to: "command", operation: "resume", body });
}

function resumeOf({ queue }: CoordinatorState, { checkpointId }: Open): Queued | undefined {
  return [...queue.values()].find(({ read }) => {
    return read.ok && read.command.operation === "resume" && read.command.checkpointId === checkpointId;
  });
}

/**
 * The resume that has to be decided before every other command: what is over stands in nobody's way. The only exception to the
 * order of commands (L11): those before it came when the lease was over, or is by now.
 */
export function overdueResume({ state, nowMs }: Context): Queued | undefined {
  const { open } = state;
  return open !== undefined && isOver(open, nowMs) ? resumeOf(state, open) : undefined;
}
