/**
 * What the coordinator does next: `react` looks at the folded state and gives one decision. It is asked again after each, with
 * everything that it has appended folded in, so that whoever takes over after a crash goes on where the log ends.
 *
 * The order: repeat who joined and left; refuse what could not be read; end what
 * is open when its lease is over; go on with the commands under way, oldest first; then decide
 * the next command. Where nothing of that is due: wait.
 */
import type { Command, ControlEvent, Problem } from "@holdpoint/schemas";
import { admitCapture, stepCapture } from "./capture.ts";
import { admitCommit, stepCommit } from "./commit.ts";
import { admitCheckpoint, giveUpCheckpoint, stepCheckpoint } from "./composite.ts";
import { answer, append, control, type Context, type Decision, fail, idle, refuse } from "./decision.ts";
import { excessOf } from "./drafts.ts";
import { fence } from "./fences.ts";
import { admitRenew, leaseEnd, movingLease, overdueResume } from "./lease.ts";
import { type ByOperation, byOperation, idOf } from "./orders.ts";
import { admitPrepare, stepPrepare } from "./prepare.ts";
import { admitProceed, stepProceed } from "./proceed.ts";
import { mirrorEvents } from "./processes.ts";
import { admitRelease, stepRelease } from "./release.ts";
import { admitRemove } from "./remove.ts";
import { admitRestore, giveUpRestore, stepRestore } from "./restore.ts";
import { admitResume, stepResume } from "./resume.ts";
import { admitForget, admitRetire, stepForget, stepRetire } from "./retire.ts";
import type { CoordinatorState, Op, Queued, Unreadable } from "./state.ts";
import { statusOf } from "./status.ts";

const admissions: ByOperation<[Context, Queued], Decision> = {
  discover: (order, { state }, { sequence }) => answer(sequence, order.operation, statusOf(state)),
  status: (order, { state }, { sequence }) => answer(sequence, order.operation, statusOf(state)),
  prepare: admitPrepare,
  renew: admitRenew,
  capture: admitCapture,
  proceed: admitProceed,
  commit: admitCommit,
  checkpoint: admitCheckpoint,
  resume: admitResume,
  restore: admitRestore,
  retire: admitRetire,
  forget: admitForget,
  remove: admitRemove,
  release: admitRelease,
};

/** These are answered or refused when they arrive, and never under way. */
const never = (): Decision => idle;

const steps: ByOperation<[Context, Op], Decision> = {
  discover: never,
  status: never,
  prepare: stepPrepare,
  renew: never,
  capture: stepCapture,
  proceed: stepProceed,
  commit: stepCommit,
  checkpoint: stepCheckpoint,
  resume: stepResume,
  restore: stepRestore,
  retire: stepRetire,
  forget: stepForget,
  remove: never,
  release: stepRelease,
};

/** How a command under way cleans up that cannot go on; those not named here only fail. */
const giveUps: { readonly [O in Command["operation"]]?: (context: Context, op: Op, why: Problem) => Decision } = {
  checkpoint: giveUpCheckpoint,
  restore: giveUpRestore,
};

/** The next decision. Pure: the same context gives the same decision. */
export function react(context: Context): Decision {
  const { state } = context;
  const mirrored = mirrorEvents(state);
  if (mirrored.length > 0) return append(control(...mirrored));
  if (state.unreadable.length > 0) return append(control(...refusals(state.unreadable)));
  const over = leaseEnd(context);
  if (over !== undefined) return over;
  const decisions = [...state.ops.values()].map((op) => step(context, op));
  const due = decisions.find(({ kind }) => kind !== "wait");
  if (due !== undefined) return due;
  const [first] = state.queue.values();
  const queued = overdueResume(context) ?? first;
  return queued === undefined ? soonest(decisions, state.open?.leaseUntilMs) : admit(context, queued);
}

function soonest(decisions: readonly Decision[], leaseUntilMs = Number.POSITIVE_INFINITY): Decision {
  const instants = decisions.flatMap((decision) => (decision.kind === "wait" ? [decision.untilMs] : []));
  return { kind: "wait", untilMs: Math.min(leaseUntilMs, ...instants) };
}

function step(context: Context, op: Op): Decision {
  if (op.joins === undefined) return fitting(context, op, byOperation(steps, op.order, context, op));
  return op.joinedOutcome === undefined ? idle : joined(op.command, op.joinedOutcome);
}

/** The outcome of the command that this one joined, under its own number. */
function joined(command: number, outcome: NonNullable<Op["joinedOutcome"]>): Decision {
  const answered = control({ type: "command.answered", data: { command } });
  return append(answered, { to: "outcome", outcome: { ...outcome, command } });
}

function admit(context: Context, queued: Queued): Decision {
  if (!queued.read.ok) return refuse(queued, queued.read.problem);
  const { command } = queued.read;
  const unmoved = fence(context, queued, command) ?? byOperation(admissions, command, context, queued);
  const decision = movingLease(unmoved, context, queued, command);
  const excess = excessOf(decision);
  return excess === undefined ? decision : refuse(queued, excess);
}

/** The decision, unless the log cannot hold it: then the command comes to nothing, and cleans up. */
function fitting(context: Context, op: Op, decision: Decision): Decision {
  const excess = excessOf(decision);
  if (excess === undefined) return decision;
  const { open, phase } = context.state;
  const giveUp = open?.checkpointId === idOf(op.order) ? giveUps[op.order.operation] : undefined;
  return giveUp?.(context, op, excess) ?? fail(op, excess, { phase, checkpointId: open?.checkpointId ?? null });
}

/** The most messages refused at once; the rest follows. */
const refusedAtOnce = 100;

/** One for each message, however much of it could not be read. */
function refusals(unreadable: readonly Unreadable[]): ControlEvent[] {
  const bySequence = new Map(unreadable.map((each) => [each.sequence, each]));
  return [...bySequence.values()].slice(0, refusedAtOnce).map((data) => ({ type: "input.refused", data }));
}

/** Whether `incarnation` is the coordinator that decides, as far as the log is read. */
export function isLeader({ leader }: CoordinatorState, incarnation: string): boolean {
  return leader === incarnation;
}
