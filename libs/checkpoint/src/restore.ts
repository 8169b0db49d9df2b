/**
 * Restore: what can be verified before anything is touched is; then admission closes, processes that are not expected are fenced (L8),
 * and every participant replays to the cut and installs under new attempts (L7). All or nothing: whatever fails burns those attempts,
 * and everybody serves again.
 */
import { type Assignment, type ControlEvent, logSubject, type Problem, type Result } from "@holdpoint/schemas";
import { adoptionsOf, lostIn } from "./adoption.ts";
import { ask, codeOf, everyone, inWords, type Plan, progress } from "./asks.ts";
import { naming } from "./capture.ts";
import {
  append,
  type Context,
  control,
  type Decision,
  endingOf,
  failure,
  further,
  type Planned,
  asProblem,
  refuse,
  success,
} from "./decision.ts";
import { deadlineOf, type OrderOf } from "./orders.ts";
import { endOf, processKey } from "./processes.ts";
import { incompleteness, missingIn, receiptOf, restartsIn } from "./receipt.ts";
import { restoreFailed, resumeAtEnd, resuming } from "./resume.ts";
import { replacementOf, rolloutOf } from "./rollouts.ts";
import type { CoordinatorState, Op, Queued, Restorable } from "./state.ts";

type Order = OrderOf<"restore">;

export function admitRestore(order: Order, context: Context, queued: Queued): Decision {
  const { state, anchors } = context;
  const source = state.restorable.get(order.source);
  const doubt = source === undefined ? unknownSource(order) : doubtOf(state, order, source);
  if (doubt !== undefined || source === undefined) return refuse(queued, doubt ?? unknownSource(order));
  const cut = source.cut[state.stream] ?? 0;
  if (!anchors.has(cut)) return { kind: "read", sequence: cut };
  if (anchors.get(cut) !== source.anchor) return refuse(queued, foreignStream(source, cut));
  return opened(order, context, { queued, source });
}

function unknownSource({ source }: Order): Problem {
  return asProblem("not_found", `${source} is no checkpoint that can be restored; status lists those that can`);
}

function foreignStream({ checkpointId }: Restorable, cut: number): Problem {
  const words = `the message at the cut of ${checkpointId}, sequence ${cut}, is not the one that it was taken of: the stream was damaged, rolled back or made anew`;
  return asProblem("invalid_checkpoint_state", `${words}. Nothing was touched`, { cut });
}

/** What speaks against the restore, from the log alone. */
function doubtOf(state: CoordinatorState, order: Order, source: Restorable): Problem | undefined {
  const known = new Set(source.scope.map(({ rollout }) => rollout));
  const unknown = (order.scope ?? []).filter((rollout) => !known.has(rollout));
  if (unknown.length > 0 && order.allowIncomplete !== true) return incompleteScope(source, unknown);
  const live = liveIn(state, order, source);
  if (live.length > 0) {
    const words = `${naming(live)} can still run; retire them first, then restore`;
    return asProblem("invalid_phase", words, { count: live.length });
  }
  const away = lostIn(state, source);
  if (away.length === 0) return undefined;
  const names = away.map((holding) => `${processKey(holding)} (${holding.sessions} sessions)`).join(", ");
  return asProblem(
    "invalid_checkpoint_state",
    `${names} held sessions of ${source.checkpointId}, and no worker of that instance is here: start it first`,
  );
}

function incompleteScope({ checkpointId }: Restorable, unknown: readonly string[]): Problem {
  const words = `${checkpointId} does not hold ${unknown.slice(0, 10).join(", ")}; allowIncomplete leaves out what it does not hold`;
  return asProblem("invalid_checkpoint_state", words, { count: unknown.length });
}

function liveIn(state: CoordinatorState, order: Order, source: Restorable) {
  return assignmentsOf(state, order, source).flatMap(({ rollout }) =>
    rolloutOf(state, rollout).live.map((attempt) => ({ rollout, attempt })),
  );
}

function assignmentsOf(state: CoordinatorState, { scope }: Order, source: Restorable): Assignment[] {
  const wanted = scope === undefined ? undefined : new Set(scope);
  return source.scope
    .filter(({ rollout }) => wanted === undefined || wanted.has(rollout))
    .map((episode) => ({ rollout: episode.rollout, from: episode.attempt, to: replacementOf(state, episode) }));
}

interface Admitted {
  readonly queued: Queued;
  readonly source: Restorable;
}

function opened(order: Order, context: Context, { queued, source }: Admitted): Decision {
  const { checkpointId } = order;
  const { sequence: command, atMs } = queued;
  const deadlineAtMs = deadlineOf(order, atMs);
  const assignments = assignmentsOf(context.state, order, source);
  const adoptions = adoptionsOf(context.state, source);
  const named = {
    source: source.checkpointId,
    cut: source.cut,
    assignments,
    ...(adoptions.length > 0 && { adoptions }),
  };
  const events: ControlEvent[] = [
    { type: "command.accepted", data: { command } },
    { type: "checkpoint.opened", data: { command, checkpointId, kind: "restore", deadlineAtMs } },
    { type: "restore.started", data: { command, checkpointId, ...named } },
  ];
  const asked = ask(context, { command, deadlineAtMs }, restorePlan(checkpointId, named));
  const { state } = context;
  return append(control(...events), ...fences(state, command), further(state.run, command, asked));
}

/** The most fences of one batch. Older processes than these have said goodbye themselves. */
const maxFences = 900;

/** Whoever is not expected can add nothing any more. A log that ends with a fence needs no other. */
function fences(state: CoordinatorState, command: number): readonly Planned[] {
  return [...state.processes.values()]
    .filter((process) => !process.expected && process.fencedAt !== endOf(state, process))
    .slice(-maxFences)
    .map((process) => {
      const subject = logSubject(state.run, process);
      return { to: "log", subject, command, expects: { subject, sequence: endOf(state, process) } };
    });
}

function restorePlan(checkpointId: string, payload: Plan["payload"] = {}): Plan {
  return { operation: "restore", checkpointId, stages: everyone, tolerant: false, payload };
}

export function stepRestore(order: Order, context: Context, op: Op): Decision {
  const { checkpointId } = order;
  const { state } = context;
  if (state.open?.checkpointId !== checkpointId) return ending(order, context, op);
  const stand = progress(context, op, restorePlan(checkpointId));
  if (stand.status === "going") return stand.decision;
  if (stand.status === "stopped") {
    const code = codeOf(stand.failures, "invalid_checkpoint_state");
    return giveUpRestore(context, op, asProblem(code, inWords(stand.failures)));
  }
  const faults = incompleteness(state, op, order);
  if (faults.length > 0)
    return giveUpRestore(context, op, asProblem("invalid_checkpoint_state", faults.slice(0, 10).join("; ")));
  return installed(order, context, op);
}

/** Burns the attempts, and has everybody serve again. */
export function giveUpRestore(context: Context, op: Op, why: Problem): Decision {
  return append(control(...restoreFailed(context.state, op, why), ...resumeAtEnd(context, op, "restore_failed")));
}

/** What nobody goes on with is refused from the start: its next attempt is a new one. */
function installed({ checkpointId, source }: Order, { state }: Context, op: Op): Decision {
  const { command } = op;
  const receipt = receiptOf(state, op);
  const restarts = restartsIn(receipt);
  const rollouts = [...restarts, ...missingIn(state, op)];
  const events: ControlEvent[] = [{ type: "restore.installed", data: { command, checkpointId, source, receipt } }];
  if (rollouts.length > 0) events.push({ type: "rollouts.marked", data: { command, rollouts } });
  const result: Result = { phase: "restored", checkpointId, receipt, restarts };
  return append(control(...events), success(endingOf(op), result));
}

/** After a failure: everybody serves again, and the outcome tells what was found. */
function ending({ checkpointId, source }: Order, context: Context, op: Op): Decision {
  const part = resuming(context, op, checkpointId);
  if (part.status === "going") return part.decision;
  const failures = [...part.failures];
  const after = failures.length === 0 ? "everybody serves again" : `not everybody serves again: ${inWords(failures)}`;
  const { code, message } = op.failure ?? asProblem("invalid_checkpoint_state", "it was resumed");
  const words = `nothing of ${source} was activated: ${message}. ${checkpointId} was resumed: ${after}`;
  const receipt = receiptOf(context.state, op);
  const result: Result = { phase: "idle", checkpointId, receipt, failures };
  return append(control(part.event), failure(endingOf(op), asProblem(code, words), result));
}
