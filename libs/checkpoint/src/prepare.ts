/**
 * Prepare: admission closes, callers before what they call; the first stage that is not ready ends it. Not ready by the deadline
 * leaves admission closed: the controller tries again with the same id, or resumes.
 */
import {
  type Blocker,
  type Command,
  type Episode,
  maxNamedBlockers,
  type ParticipantId,
  type Problem,
  type Result,
} from "@holdpoint/schemas";
import { answersTo, ask, callersFirst, codeOf, inWords, type Plan, progress } from "./asks.ts";
import {
  accept,
  append,
  control,
  type Context,
  type Decision,
  endingOf,
  failure,
  asProblem,
  refuse,
  success,
} from "./decision.ts";
import { deadlineOf, distinct, type OrderOf, without } from "./orders.ts";
import { expectedOf, modelCount } from "./processes.ts";
import type { CoordinatorState, Op, Queued } from "./state.ts";

/** Of a batch of 1,000 messages: the leader's fence, the cut and its outcome leave this many for processes (L4). */
export const maxProcesses = 997;

function preparePlan(checkpointId: string): Plan {
  return { operation: "prepare", checkpointId, stages: callersFirst, tolerant: false };
}

export function admitPrepare(order: OrderOf<"prepare">, context: Context, queued: Queued): Decision {
  const hindrance = hindranceOf(context.state);
  return hindrance === undefined ? append(opening(order, context, queued)) : refuse(queued, hindrance);
}

/** Why no checkpoint can be taken of this run at all. */
export function hindranceOf(state: CoordinatorState): Problem | undefined {
  const models = modelCount(state);
  if (models !== 1) {
    return asProblem("invalid_phase", `expected exactly one policy model participant, found ${models}`);
  }
  const count = expectedOf(state).length;
  if (count <= maxProcesses) return undefined;
  const words = `a cut is one batch of at most 1000 messages, so at most ${maxProcesses} processes; ${count} are expected`;
  return asProblem("invalid_phase", words, { count, limit: maxProcesses });
}

/** The acceptance of a command that prepares, which opens the checkpoint unless it is open, and asks the first stage. */
export function opening(order: Command & { checkpointId: string }, context: Context, queued: Queued) {
  const { checkpointId } = order;
  const { sequence: command, atMs } = queued;
  const deadlineAtMs = deadlineOf(order, atMs);
  const first = ask(context, { command, deadlineAtMs }, preparePlan(checkpointId));
  if (context.state.open !== undefined) return accept(queued, first);
  const data = { command, checkpointId, kind: "checkpoint" as const, deadlineAtMs };
  return accept(queued, { type: "checkpoint.opened", data }, first);
}

export function stepPrepare({ checkpointId }: OrderOf<"prepare">, context: Context, op: Op): Decision {
  const part = preparing(context, op, checkpointId);
  switch (part.status) {
    case "going":
      return part.decision;
    case "failed": {
      const { command } = op;
      const stalled = control({ type: "checkpoint.stalled", data: { command, checkpointId } });
      return append(stalled, failure(endingOf(op), part.problem, part.result));
    }
    case "done":
      return append(control(part.event), success(endingOf(op), part.result));
  }
}

/** Where the preparing part of a command stands: what to do, or how it came out. */
export function preparing(context: Context, op: Op, checkpointId: string) {
  const stand = progress(context, op, preparePlan(checkpointId));
  if (stand.status === "going") return stand;
  const { restarts, continued } = answered(context.state, op);
  if (stand.status === "stopped") {
    const failures = [...stand.failures];
    const result: Result = { phase: "preparing", checkpointId, ...notReady(context.state, op), failures };
    const code = codeOf(stand.failures, "deadline_exceeded");
    return { status: "failed" as const, problem: asProblem(code, stallWords(checkpointId, result)), result };
  }
  const data = { command: op.command, checkpointId, restarts, continued };
  const event = { type: "checkpoint.prepared" as const, data };
  const result: Result = {
    phase: "prepared",
    checkpointId,
    ready: true,
    restarts,
    continued,
    preparedAtMs: context.nowMs,
  };
  return { status: "done" as const, event, result };
}

/** Continued is what the environment says, which owns the episodes; a restart of anybody is a restart. */
function answered(state: CoordinatorState, op: Op): { restarts: Episode[]; continued: Episode[] } {
  const answers = answersTo(state, op, "prepare");
  const restarts = distinct([...(state.open?.restarts ?? []), ...answers.flatMap(({ answer }) => answer.restarts)]);
  const environment = answers.filter(({ process }) => process.role === "environment");
  return {
    restarts,
    continued: without(
      environment.flatMap(({ answer }) => answer.continued),
      restarts,
    ),
  };
}

/** What a prepare has learnt that did not get ready: at most so many blockers by name, and how many there are. */
export function notReady(state: CoordinatorState, op: Op) {
  const answers = answersTo(state, op, "prepare");
  const named = answers.flatMap(({ process: { role, instance }, answer }) =>
    answer.blockers.map((blocker): ParticipantId & Blocker => ({ role, instance, ...blocker })),
  );
  const blockerCount = answers.reduce((sum, { answer }) => sum + answer.blockerCount, 0);
  const { restarts } = answered(state, op);
  return { ready: false, blockers: named.slice(0, maxNamedBlockers), blockerCount, restarts };
}

function stallWords(checkpointId: string, { blockers = [], blockerCount = 0, failures = [] }: Result): string {
  const [first] = blockers;
  const example =
    first === undefined
      ? ""
      : `, such as ${first.rollout} attempt ${first.attempt} at ${first.role} ${first.instance}: ${first.reason}`;
  const blocked = blockerCount === 0 ? [] : [`${blockerCount} blockers${example}`];
  const failed = failures.length === 0 ? [] : [inWords(failures)];
  const why = [...blocked, ...failed].join("; ");
  return `${checkpointId} is not ready: ${why}. Admission stays closed: prepare it again, or resume it`;
}
