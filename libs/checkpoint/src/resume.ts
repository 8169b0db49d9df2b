/**
 * Resume: the id is stale from its first event, for ever, whether it was open or not; what waited for it is aborted; then everybody
 * is asked to serve again, what is called before who calls, through all failures.
 */
import type { ControlEvent, Failure, Problem, Result } from "@holdpoint/schemas";
import { ask, calleesFirst, codeOf, inWords, type Plan, progress } from "./asks.ts";
import { cleanUpMs } from "./commands.ts";
import {
  append,
  type Context,
  control,
  type Decision,
  endingOf,
  failure,
  type Planned,
  asProblem,
  success,
} from "./decision.ts";
import { isOver } from "./lease.ts";
import { deadlineOf, idOf, type OrderOf } from "./orders.ts";
import type { CoordinatorState, Op, Queued } from "./state.ts";

function resumePlan(checkpointId: string): Plan {
  return { operation: "resume", checkpointId, stages: calleesFirst, tolerant: true };
}

export function admitResume(order: OrderOf<"resume">, context: Context, queued: Queued): Decision {
  const { checkpointId } = order;
  const { sequence: command, atMs } = queued;
  const deadlineAtMs = Math.max(deadlineOf(order, atMs), context.nowMs + cleanUpMs);
  const ended = endedBy(context.state, checkpointId, command);
  const events: ControlEvent[] = [
    { type: "command.accepted", data: { command } },
    { type: "checkpoint.resumed", data: { command, checkpointId, reason: reasonOf(context, checkpointId) } },
    ...ended.flatMap(({ events: own }) => own),
    ask(context, { command, deadlineAtMs }, resumePlan(checkpointId)),
  ];
  return append(control(...events), ...ended.map(({ outcome }) => outcome));
}

function reasonOf({ state: { open }, nowMs }: Context, checkpointId: string): "command" | "lease" {
  return open?.checkpointId === checkpointId && isOver(open, nowMs) ? "lease" : "command";
}

/** What was being done for the open checkpoint ends here: it publishes nothing any more. */
function endedBy(state: CoordinatorState, checkpointId: string, by: number) {
  if (state.open?.checkpointId !== checkpointId) return [];
  return [...state.ops.values()]
    .filter(({ order, joins }) => joins === undefined && idOf(order) === checkpointId && order.operation !== "release")
    .map((op) => aborted(state, op, by));
}

function aborted(state: CoordinatorState, op: Op, by: number): { events: ControlEvent[]; outcome: Planned } {
  const { command, order } = op;
  const checkpointId = idOf(order) ?? "";
  const why = asProblem("stale_checkpoint", `resume, command ${by}, ended ${checkpointId} before this was done`);
  const outcome = failure(endingOf(op), why, { phase: "idle", checkpointId });
  if (order.operation !== "restore")
    return { events: [{ type: "command.failed", data: { command, problem: why } }], outcome };
  return { events: restoreFailed(state, op, why), outcome };
}

/** A restore that came to nothing: nothing of it was activated, and the attempts that it had taken are burnt. */
export function restoreFailed({ open }: CoordinatorState, { command }: Op, why: Problem): ControlEvent[] {
  const { source, assignments } = open?.restore ?? { source: "", assignments: [] };
  const checkpointId = open?.checkpointId ?? "";
  const rollouts = assignments.map(({ rollout, to }) => ({ rollout, attempt: to }));
  return [
    { type: "restore.failed", data: { command, checkpointId, source, problem: why } },
    { type: "rollouts.marked", data: { command, rollouts } },
  ];
}

export function stepResume({ checkpointId }: OrderOf<"resume">, context: Context, op: Op): Decision {
  const part = resuming(context, op, checkpointId);
  if (part.status === "going") return part.decision;
  const { event, failures } = part;
  const result: Result = { phase: "idle", checkpointId }; // of this id; another may be open already
  if (failures.length === 0) return append(control(event), success(endingOf(op), result));
  const words = `${checkpointId} is over, and not everybody serves again: ${inWords(failures)}. Resume again`;
  const why = asProblem(codeOf(failures, "unavailable"), words);
  return append(control(event), failure(endingOf(op), why, { ...result, failures: [...failures] }));
}

/** Where the resuming part of a command stands. It never fails: it ends, with the failures by name. */
export function resuming(context: Context, op: Op, checkpointId: string) {
  const stand = progress(context, op, resumePlan(checkpointId));
  if (stand.status === "going") return stand;
  const event: ControlEvent = { type: "resume.ended", data: { command: op.command, checkpointId } };
  const failures: readonly Failure[] = stand.failures;
  return { status: "done" as const, event, failures };
}

/** The id is over, and everybody is asked to serve again, at the end of a command that did more than that. */
export function resumeAtEnd(context: Context, op: Op, reason: "command" | "restore_failed"): ControlEvent[] {
  const checkpointId = idOf(op.order) ?? "";
  const { command } = op;
  const deadlineAtMs = Math.max(op.deadlineAtMs, context.nowMs + cleanUpMs);
  return [
    { type: "checkpoint.resumed", data: { command, checkpointId, reason } },
    ask(context, { command, deadlineAtMs }, resumePlan(checkpointId)),
  ];
}
