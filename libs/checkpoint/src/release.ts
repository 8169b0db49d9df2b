/**
 * Release: external state that only dropped checkpoints need is freed, best effort. It is in the log before anything is freed (L13), is
 * honoured only for the id that was resumed most recently, and delays nothing.
 */
import type { Problem, Result } from "@holdpoint/schemas";
import { ask, everyone, type Plan, progress } from "./asks.ts";
import {
  accept,
  append,
  type Context,
  control,
  type Decision,
  endingOf,
  asProblem,
  refuse,
  success,
} from "./decision.ts";
import { deadlineOf, type OrderOf } from "./orders.ts";
import type { CoordinatorState, Op, Queued } from "./state.ts";

type Order = OrderOf<"release">;

function releasePlan({ checkpointId, kept }: Order, dropped: string[] = []): Plan {
  return { operation: "release", checkpointId, stages: everyone, tolerant: true, payload: { kept, dropped } };
}

export function admitRelease(order: Order, context: Context, queued: Queued): Decision {
  const hindrance = hindranceOf(context.state, order);
  if (hindrance !== undefined) return refuse(queued, hindrance);
  const { checkpointId, kept } = order;
  const { sequence: command, atMs } = queued;
  const dropped = [...context.state.restorable.keys()].filter((id) => !kept.includes(id));
  const asking = { command, deadlineAtMs: deadlineOf(order, atMs) };
  const releasing = { type: "checkpoint.releasing" as const, data: { command, checkpointId, kept, dropped } };
  return append(accept(queued, releasing, ask(context, asking, releasePlan(order, dropped))));
}

function hindranceOf(
  { lastResumed, restorable }: CoordinatorState,
  { checkpointId, kept }: Order,
): Problem | undefined {
  if (lastResumed !== checkpointId) {
    const latest =
      lastResumed === undefined ? "no checkpoint was resumed yet" : `the most recently resumed is ${lastResumed}`;
    return asProblem("stale_checkpoint", `release names ${checkpointId}, and ${latest}; nothing was freed`);
  }
  const missing = kept.filter((id) => !restorable.has(id));
  if (missing.length === 0) return undefined;
  const words = `${missing.slice(0, 10).join(", ")} cannot be restored, so cannot be kept; nothing was freed`;
  return asProblem("not_found", words);
}

export function stepRelease(order: Order, context: Context, op: Op): Decision {
  const stand = progress(context, op, releasePlan(order));
  if (stand.status === "going") return stand.decision;
  const { state } = context;
  const { checkpointId } = order;
  const released = control({ type: "checkpoint.released", data: { command: op.command, checkpointId } });
  const restorable = [...state.restorable.keys()];
  const failures = [...stand.failures];
  const result: Result = { phase: "idle", checkpointId, restorable, ...(failures.length > 0 && { failures }) };
  return append(released, success(endingOf(op), result));
}
