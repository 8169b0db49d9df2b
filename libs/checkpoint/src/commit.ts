/**
 * Commit: what the cut names is made durable and verified; then the checkpoint stands, anchored by the digest of the message at its
 * cut (L15). From `prepared` it captures first.
 */
import type { ControlEvent, Problem, Result } from "@holdpoint/schemas";
import { answersTo, ask, codeOf, everyone, inWords, type Plan, progress } from "./asks.ts";
import { capturePlan, capturing, scopeOf } from "./capture.ts";
import {
  accept,
  append,
  control,
  type Context,
  type Decision,
  endingOf,
  fail,
  asProblem,
  refuse,
  success,
} from "./decision.ts";
import { disagreements } from "./edges.ts";
import { deadlineOf, type OrderOf } from "./orders.ts";
import type { Captured, CoordinatorState, Op, Queued } from "./state.ts";

function commitPlan(checkpointId: string, stop: boolean | undefined): Plan {
  const payload = stop === undefined ? {} : { stop };
  return { operation: "commit", checkpointId, stages: everyone, tolerant: false, payload };
}

export function admitCommit(order: OrderOf<"commit">, context: Context, queued: Queued): Decision {
  const { checkpointId, stop } = order;
  const asking = { command: queued.sequence, deadlineAtMs: deadlineOf(order, queued.atMs) };
  if (context.state.phase === "captured") {
    return append(accept(queued, ask(context, asking, commitPlan(checkpointId, stop))));
  }
  const wanted = scopeOf(context.state.open, order.scope);
  if (!wanted.ok) return refuse(queued, wanted.problem);
  return append(accept(queued, ask(context, asking, capturePlan(checkpointId, wanted.scope))));
}

export function stepCommit({ checkpointId, scope, stop }: OrderOf<"commit">, context: Context, op: Op): Decision {
  if (context.state.phase === "prepared") {
    const part = capturing(context, op, checkpointId, scope);
    if (part.status === "going") return part.decision;
    return part.status === "done" ? append(...part.cut) : fail(op, part.problem, part.result);
  }
  const part = committing(context, op, checkpointId, stop);
  if (part.status === "going") return part.decision;
  if (part.status === "failed") return fail(op, part.problem, part.result);
  return append(control(part.event), success(endingOf(op), part.result));
}

/** Where the committing part of a command stands, once the cut stands. */
export function committing(context: Context, op: Op, checkpointId: string, stop?: boolean) {
  const { state, anchors, nowMs } = context;
  const captured = state.open?.captured;
  if (captured === undefined) return broken(checkpointId, asProblem("invalid_phase", `${checkpointId} has no cut`));
  const stand = progress(context, op, commitPlan(checkpointId, stop));
  if (stand.status === "going") return stand;
  const failures = [...stand.failures];
  if (stand.status === "stopped") {
    const words = `${checkpointId} was not committed: ${inWords(failures)}. Its cut stands: commit it again, or resume it`;
    return broken(checkpointId, asProblem(codeOf(failures, "unavailable"), words), { failures });
  }
  const doubts = doubtsAbout(state, op, captured);
  if (doubts.length > 0) return broken(checkpointId, doubtProblem(checkpointId, doubts));
  if (!anchors.has(captured.sequence)) {
    return { status: "going" as const, decision: { kind: "read" as const, sequence: captured.sequence } };
  }
  const anchor = anchors.get(captured.sequence);
  if (anchor === undefined) return broken(checkpointId, lostProblem(captured.sequence));
  return committed({ state, op, checkpointId, captured, anchor, nowMs });
}

function broken(checkpointId: string, why: Problem, more: Partial<Result> = {}) {
  const result: Result = { phase: "captured", checkpointId, ...more };
  return { status: "failed" as const, problem: why, result };
}

/** What speaks against the cut: sessions missing, digests changed since the capture, calls whose ends disagree (L5). */
function doubtsAbout(state: CoordinatorState, op: Op, { holdings, sessions }: Captured): readonly string[] {
  const answers = answersTo(state, op, "commit");
  const held = holdings.flatMap(({ role, instance, worker, digest, sessions: count }) => {
    const key = `${role}.${instance}.${worker}`;
    const found = sessions.get(key)?.length ?? 0;
    const missing = found === count ? [] : [`${key} answered ${count} sessions and captured ${found}`];
    const now = answers.find(({ process }) => process.key === key)?.answer.digest ?? digest;
    return now === digest ? missing : [...missing, `${key} captured ${digest} and committed ${now}`];
  });
  return [...held, ...disagreements(state, sessions)];
}

function doubtProblem(checkpointId: string, doubts: readonly string[]): Problem {
  const named = doubts.slice(0, 10);
  const words = `${checkpointId} is no consistent cut: ${named.join("; ")}. Resume it, and take another`;
  return asProblem("invalid_checkpoint_state", words, { count: doubts.length });
}

function lostProblem(sequence: number): Problem {
  return asProblem("invalid_checkpoint_state", `the message at the cut, sequence ${sequence}, is not in the stream`);
}

function committed(facts: {
  readonly state: CoordinatorState;
  readonly op: Op;
  readonly checkpointId: string;
  readonly captured: Captured;
  readonly anchor: string;
  readonly nowMs: number;
}) {
  const { state, op, checkpointId, captured, anchor, nowMs } = facts;
  const { atMs: capturedAtMs } = captured;
  const named = { cut: { [state.stream]: captured.sequence }, holdings: [...captured.holdings] };
  const data = { command: op.command, checkpointId, ...named, anchor, scope: [...captured.scope], capturedAtMs };
  const event: ControlEvent = { type: "checkpoint.committed", data };
  const result: Result = {
    phase: "committed",
    checkpointId,
    ...named,
    continued: data.scope,
    capturedAtMs,
    restorableAtMs: nowMs,
  };
  return { status: "done" as const, event, result };
}
