/**
 * Capture: every participant fixes its sessions' state, and one batch makes the cut stand only if none of them has said anything
 * since (L4). Where one has, for example a new incarnation, all are asked again, within the deadline.
 */
import {
  type ControlEvent,
  controlSubject,
  type Episode,
  type Failure,
  type Holding,
  logSubject,
  type Problem,
  type Result,
} from "@holdpoint/schemas";
import { ask, codeOf, everyone, inWords, type Plan, progress } from "./asks.ts";
import {
  accept,
  append,
  control,
  type Context,
  type Decision,
  endingOf,
  fail,
  further,
  type Planned,
  asProblem,
  refuse,
  success,
} from "./decision.ts";
import { deadlineOf, type OrderOf, without } from "./orders.ts";
import { endOf, expectedOf } from "./processes.ts";
import type { Answer, CoordinatorState, Op, Open, Process, Queued } from "./state.ts";

export function capturePlan(checkpointId: string, scope: readonly Episode[]): Plan {
  return { operation: "capture", checkpointId, stages: everyone, tolerant: false, payload: { scope: [...scope] } };
}

export function admitCapture(order: OrderOf<"capture">, context: Context, queued: Queued): Decision {
  const { checkpointId } = order;
  const wanted = scopeOf(context.state.open, order.scope);
  if (!wanted.ok) return refuse(queued, wanted.problem);
  const asking = { command: queued.sequence, deadlineAtMs: deadlineOf(order, queued.atMs) };
  return append(accept(queued, ask(context, asking, capturePlan(checkpointId, wanted.scope))));
}

type Scope =
  | { readonly ok: true; readonly scope: readonly Episode[] }
  | { readonly ok: false; readonly problem: Problem };

/** The episodes to capture: those named, or all that prepare answered as continued. */
export function scopeOf(open: Open | undefined, named: readonly Episode[] | undefined): Scope {
  const { continued = [], restarts = [] } = open?.prepared ?? {};
  const scope = without(named ?? continued, []);
  const restarting = without(scope, without(scope, restarts));
  if (restarting.length > 0) return { ok: false, problem: restartProblem(restarting) };
  const unknown = without(scope, continued);
  if (unknown.length > 0) return { ok: false, problem: unknownProblem(unknown) };
  return { ok: true, scope };
}

function restartProblem(restarting: readonly Episode[]): Problem {
  const words = `the scope names ${naming(restarting)}, which cannot be captured and starts over after a crash; leave it out`;
  return asProblem("restart_in_scope", words, { count: restarting.length });
}

function unknownProblem(unknown: readonly Episode[]): Problem {
  const words = `the scope names ${naming(unknown)}, which prepare did not answer as continued`;
  return asProblem("not_found", words, { count: unknown.length });
}

/** At most ten episodes as words. */
export function naming(episodes: readonly Episode[]): string {
  const words = episodes.slice(0, 10).map(({ rollout, attempt }) => `${rollout} attempt ${attempt}`);
  const rest = episodes.length - words.length;
  return rest > 0 ? `${words.join(", ")} and ${rest} more` : words.join(", ");
}

export function stepCapture({ checkpointId, scope }: OrderOf<"capture">, context: Context, op: Op): Decision {
  const part = capturing(context, op, checkpointId, scope);
  switch (part.status) {
    case "going":
      return part.decision;
    case "failed":
      return fail(op, part.problem, part.result);
    case "done":
      return append(...part.cut, success(endingOf(op), part.result));
  }
}

/** Where the capturing part of a command stands. */
export function capturing(context: Context, op: Op, checkpointId: string, named: readonly Episode[] | undefined) {
  const { state } = context;
  const pending = answering(context, op, checkpointId);
  if (pending !== undefined) return pending;
  const wanted = scopeOf(state.open, named);
  if (!wanted.ok) return { status: "failed" as const, problem: wanted.problem, result: preparedResult(checkpointId) };
  const { scope } = wanted;
  const plan = capturePlan(checkpointId, scope);
  const stand = progress(context, op, plan);
  if (stand.status === "going") return stand;
  if (stand.status === "stopped") return failed(checkpointId, stand.failures);
  const restless = restlessOf(state, op);
  if (restless.length > 0) return again(context, op, plan, restless);
  const holdings = holdingsOf(state, op);
  const result: Result = {
    phase: "captured",
    checkpointId,
    capturedAtMs: context.nowMs,
    holdings,
    continued: [...scope],
  };
  return { status: "done" as const, cut: cutOf(state, op, { checkpointId, scope, holdings }), result };
}

/** Waits for answers, of which there are many messages, without looking at each session of the scope for every one of them. */
function answering(context: Context, op: Op, checkpointId: string) {
  if (!op.asks.some(({ operation }) => operation === "capture")) return undefined;
  const stand = progress(context, op, capturePlan(checkpointId, [])); // asked already: nobody is told this scope
  return stand.status === "going" ? stand : undefined;
}

function failed(checkpointId: string, failures: readonly Failure[]) {
  const code = codeOf(failures, "invalid_phase");
  const words = `${checkpointId} was not captured: ${inWords(failures)}. It stays prepared: capture it again, or resume it`;
  const result: Result = { ...preparedResult(checkpointId), failures: [...failures] };
  return { status: "failed" as const, problem: asProblem(code, words), result };
}

function preparedResult(checkpointId: string): Result {
  return { phase: "prepared", checkpointId };
}

function answersOf({ asks }: Op): ReadonlyMap<string, Answer> {
  return asks.findLast(({ operation }) => operation === "capture")?.answers ?? new Map();
}

/** Who has said something after it had captured: the batch would be refused. */
function restlessOf(state: CoordinatorState, op: Op): readonly Process[] {
  const answers = answersOf(op);
  return expectedOf(state).filter((process) => endOf(state, process) !== answers.get(process.key)?.sequence);
}

/** Asks all again while there is time; then the deadline passes as an event, and the next look finds it. */
function again(context: Context, op: Op, plan: Plan, restless: readonly Process[]) {
  const { command, deadlineAtMs, timedOut } = op;
  if (timedOut) {
    const late = {
      code: "deadline_exceeded" as const,
      message: "it went on after it had captured, and no time was left",
    };
    const failures = restless.map(({ role, instance, worker }) => ({ role, instance, worker, problem: late }));
    return failed(plan.checkpointId ?? "", failures);
  }
  const isLate = context.nowMs >= deadlineAtMs;
  const event: ControlEvent = isLate ? { type: "deadline.passed", data: { command } } : ask(context, op, plan);
  return { status: "going" as const, decision: append(control(event)) };
}

/** The digest of no session: SHA-256 of the empty text. */
export const emptyDigest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

function holdingsOf(state: CoordinatorState, op: Op): Holding[] {
  const answers = answersOf(op);
  return expectedOf(state).flatMap(({ key, role, instance, worker }) => {
    const answer = answers.get(key);
    if (answer === undefined) return [];
    const { digest = emptyDigest, sessions, sequence: capturedSequence } = answer;
    return [{ role, instance, worker, digest, sessions, capturedSequence }];
  });
}

interface Cut {
  readonly checkpointId: string;
  readonly scope: readonly Episode[];
  readonly holdings: readonly Holding[];
}

/** The batch that makes the cut stand: the leader's fence, a guard for each process, the cut. */
function cutOf(state: CoordinatorState, { command }: Op, { checkpointId, scope, holdings }: Cut): readonly Planned[] {
  const { run, stream, controlSequence } = state;
  const leader = guard(checkpointId, controlSubject(run), controlSequence);
  const guards = holdings.map((holding) => guard(checkpointId, logSubject(run, holding), holding.capturedSequence));
  const data = { command, checkpointId, stream, scope: [...scope], holdings: [...holdings] };
  return [leader, ...guards, further(run, command, { type: "checkpoint.captured", data })];
}

function guard(checkpointId: string, subject: string, sequence: number): Planned {
  const events: ControlEvent[] = [{ type: "cut.guarded", data: { checkpointId, subject, sequence } }];
  return { to: "control", events, expects: { subject, sequence } };
}
