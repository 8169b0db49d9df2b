/**
 * Checkpoint, the composite: prepare, capture, proceed, commit, resume, with one outcome. Work goes on from the capture. Where a step
 * fails it resumes by itself: nobody stays parked, and the outcome says so.
 */
import type { Problem, Result } from "@holdpoint/schemas";
import { inWords } from "./asks.ts";
import { capturing } from "./capture.ts";
import { committing } from "./commit.ts";
import {
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
import type { OrderOf } from "./orders.ts";
import { hindranceOf, notReady, opening, preparing } from "./prepare.ts";
import { proceeding } from "./proceed.ts";
import { resumeAtEnd, resuming } from "./resume.ts";
import type { CoordinatorState, Op, Queued } from "./state.ts";

type Order = OrderOf<"checkpoint">;

export function admitCheckpoint(order: Order, context: Context, queued: Queued): Decision {
  const hindrance = hindranceOf(context.state);
  return hindrance === undefined ? append(opening(order, context, queued)) : refuse(queued, hindrance);
}

export function stepCheckpoint(order: Order, context: Context, op: Op): Decision {
  const { open, phase } = context.state;
  if (open?.checkpointId !== order.checkpointId) return ending(order, context, op);
  switch (phase) {
    case "prepared":
      return capture(order, context, op);
    case "captured":
      return open.proceeded ? commit(order, context, op) : proceed(order, context, op);
    case "committed":
      return append(control(...resumeAtEnd(context, op, "command")));
    case "idle":
    case "preparing":
    case "restored":
      return prepare(order, context, op);
  }
}

function prepare({ checkpointId }: Order, context: Context, op: Op): Decision {
  const part = preparing(context, op, checkpointId);
  if (part.status === "going") return part.decision;
  return part.status === "done" ? append(control(part.event)) : giveUpCheckpoint(context, op, part.problem);
}

function capture({ checkpointId, scope }: Order, context: Context, op: Op): Decision {
  const part = capturing(context, op, checkpointId, scope);
  if (part.status === "going") return part.decision;
  return part.status === "done" ? append(...part.cut) : giveUpCheckpoint(context, op, part.problem);
}

function proceed({ checkpointId }: Order, context: Context, op: Op): Decision {
  const part = proceeding(context, op, checkpointId);
  if (part.status === "going") return part.decision;
  return part.status === "done" ? append(control(part.event)) : giveUpCheckpoint(context, op, part.problem);
}

function commit({ checkpointId }: Order, context: Context, op: Op): Decision {
  const part = committing(context, op, checkpointId);
  if (part.status === "going") return part.decision;
  return part.status === "done" ? append(control(part.event)) : giveUpCheckpoint(context, op, part.problem);
}

/** Has everybody serve again. */
export function giveUpCheckpoint(context: Context, op: Op, why: Problem): Decision {
  const failed = { type: "command.failed" as const, data: { command: op.command, problem: why } };
  return append(control(failed, ...resumeAtEnd(context, op, "command")));
}

/** What the steps that were done have found out. */
function learnt(state: CoordinatorState, op: Op): Partial<Result> {
  const { prepared, captured, restorableAtMs } = op.past ?? {};
  if (prepared === undefined) return notReady(state, op);
  const { restarts, continued, atMs: preparedAtMs } = prepared;
  const ready = { ready: true, restarts: [...restarts], continued: [...continued], preparedAtMs };
  if (captured === undefined) return ready;
  const { atMs: capturedAtMs, sequence, holdings } = captured;
  const fixed = { ...ready, continued: [...captured.scope], holdings: [...holdings], capturedAtMs };
  if (restorableAtMs === undefined) return fixed;
  return { ...fixed, cut: { [state.stream]: sequence }, restorableAtMs };
}

/** Everybody serves again; the outcome tells of the checkpoint, or why there is none. */
function ending({ checkpointId }: Order, context: Context, op: Op): Decision {
  const part = resuming(context, op, checkpointId);
  if (part.status === "going") return part.decision;
  const { event, failures } = part;
  const named = failures.length > 0 ? { failures: [...failures] } : {};
  const result: Result = { phase: "idle", checkpointId, ...learnt(context.state, op), ...named };
  if (op.failure === undefined) return append(control(event), success(endingOf(op), result));
  const after = failures.length === 0 ? "everybody serves again" : `not everybody serves again: ${inWords(failures)}`;
  const why = asProblem(
    op.failure.code,
    `${op.failure.message}. ${checkpointId} was resumed: ${after}`,
    op.failure.details,
  );
  return append(control(event), failure(endingOf(op), why, result));
}
