/**
 * Retire and forget: the end of rollouts. The mark is raised first, and for good, then running work is stopped and freed, callers
 * before what they call; forget drops the marks of rollouts that can no longer run.
 */
import type { Episode, Problem, Result } from "@holdpoint/schemas";
import { ask, codeOf, everyone, inWords, type Plan, progress } from "./asks.ts";
import { naming } from "./capture.ts";
import { namedRollouts } from "./checkpoints.ts";
import {
  accept,
  append,
  type Context,
  control,
  type Decision,
  endingOf,
  fail,
  further,
  asProblem,
  refuse,
  success,
} from "./decision.ts";
import { deadlineOf, type OrderOf } from "./orders.ts";
import { rolloutOf } from "./rollouts.ts";
import type { CoordinatorState, Op, Queued } from "./state.ts";

const stages = [["environment"], ["agent"], ["model", "resources"]] as const;

function retirePlan(rollouts: readonly Episode[]): Plan {
  return { operation: "retire", checkpointId: null, stages, tolerant: true, payload: { rollouts: [...rollouts] } };
}

export function admitRetire(order: OrderOf<"retire">, context: Context, queued: Queued): Decision {
  const { rollouts } = order;
  const command = queued.sequence;
  const asking = { command, deadlineAtMs: deadlineOf(order, queued.atMs) };
  const marked = { type: "rollouts.marked" as const, data: { command, rollouts } };
  const first = ask(context, asking, retirePlan(rollouts));
  return append(accept(queued, marked), further(context.state.run, command, first));
}

export function stepRetire({ rollouts }: OrderOf<"retire">, context: Context, op: Op): Decision {
  const stand = progress(context, op, retirePlan(rollouts));
  if (stand.status === "going") return stand.decision;
  const { command } = op;
  const failures = [...stand.failures];
  const result: Result = {
    phase: context.state.phase,
    checkpointId: context.state.open?.checkpointId ?? null,
    failures,
  };
  if (failures.length === 0) {
    return append(control({ type: "rollouts.retired", data: { command, rollouts } }), success(endingOf(op), result));
  }
  const words = `the rollouts are refused from here on, but not freed everywhere: ${inWords(failures)}. Retire them again`;
  return fail(op, asProblem(codeOf(failures, "unavailable"), words), result);
}

function forgetPlan(rollouts: readonly string[]): Plan {
  const payload = { rollouts: rollouts.map((rollout) => ({ rollout, attempt: 0 })) };
  return { operation: "forget", checkpointId: null, stages: everyone, tolerant: false, payload };
}

export function admitForget(order: OrderOf<"forget">, context: Context, queued: Queued): Decision {
  const hindrance = hindranceOf(context.state, order.rollouts);
  if (hindrance !== undefined) return refuse(queued, hindrance);
  const asking = { command: queued.sequence, deadlineAtMs: deadlineOf(order, queued.atMs) };
  return append(accept(queued, ask(context, asking, forgetPlan(order.rollouts))));
}

/** Only what can no longer run may be forgotten: its attempts' numbers could be taken twice otherwise (L7). */
function hindranceOf(state: CoordinatorState, rollouts: readonly string[]): Problem | undefined {
  const live = rollouts.flatMap((rollout) => rolloutOf(state, rollout).live.map((attempt) => ({ rollout, attempt })));
  if (live.length > 0)
    return asProblem("invalid_phase", `${naming(live)} can still run; retire them before you forget them`);
  const named = namedRollouts(state);
  const kept = rollouts.find((rollout) => named.has(rollout));
  if (kept === undefined) return undefined;
  const words = `${kept} is named by ${named.get(kept)}, which can be restored; release that first`;
  return asProblem("invalid_phase", words);
}

export function stepForget({ rollouts }: OrderOf<"forget">, context: Context, op: Op): Decision {
  const stand = progress(context, op, forgetPlan(rollouts));
  if (stand.status === "going") return stand.decision;
  const { command } = op;
  const failures = [...stand.failures];
  const result: Result = {
    phase: context.state.phase,
    checkpointId: context.state.open?.checkpointId ?? null,
    failures,
  };
  if (failures.length === 0) {
    return append(control({ type: "rollouts.forgotten", data: { command, rollouts } }), success(endingOf(op), result));
  }
  const words = `not everybody forgot: ${inWords(failures)}. The marks stay; forget again`;
  return fail(op, asProblem(codeOf(failures, "unavailable"), words), result);
}
