/** Proceed: work goes on, what is called before who calls, while the id stays open and the cut stays fixed. */
import type { Result } from "@holdpoint/schemas";
import { ask, calleesFirst, codeOf, inWords, type Plan, progress } from "./asks.ts";
import {
  accept,
  append,
  control,
  type Context,
  type Decision,
  endingOf,
  fail,
  asProblem,
  success,
} from "./decision.ts";
import { deadlineOf, type OrderOf } from "./orders.ts";
import type { Op, Queued } from "./state.ts";

function proceedPlan(checkpointId: string): Plan {
  return { operation: "proceed", checkpointId, stages: calleesFirst, tolerant: true };
}

export function admitProceed(order: OrderOf<"proceed">, context: Context, queued: Queued): Decision {
  const asking = { command: queued.sequence, deadlineAtMs: deadlineOf(order, queued.atMs) };
  return append(accept(queued, ask(context, asking, proceedPlan(order.checkpointId))));
}

export function stepProceed({ checkpointId }: OrderOf<"proceed">, context: Context, op: Op): Decision {
  const part = proceeding(context, op, checkpointId);
  if (part.status === "going") return part.decision;
  if (part.status === "done") return append(control(part.event), success(endingOf(op), part.result));
  return fail(op, part.problem, part.result);
}

/** Where the proceeding part of a command stands. It goes on through failures, so that as many as can go on do. */
export function proceeding(context: Context, op: Op, checkpointId: string) {
  const stand = progress(context, op, proceedPlan(checkpointId));
  if (stand.status === "going") return stand;
  const failures = [...stand.failures];
  const result: Result = { phase: context.state.phase, checkpointId };
  if (failures.length === 0) {
    const data = { command: op.command, checkpointId };
    return { status: "done" as const, event: { type: "checkpoint.proceeded" as const, data }, result };
  }
  const words = `not everybody went on: ${inWords(failures)}. Proceed again, or resume ${checkpointId}`;
  const why = asProblem(codeOf(failures, "unavailable"), words);
  return { status: "failed" as const, problem: why, result: { ...result, failures } };
}
