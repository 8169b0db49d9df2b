/**
 * Asking participants, stage by stage. A stage is over when every expected process of its roles has answered, or its time is
 * over, which is an event as well (L10).
 *
 *  - strict: the first stage with a failure ends the plan; all stages share the command's deadline.
 *  - tolerant: the plan goes on through failures; each stage has its share of the time that is left.
 */
import type { Asked, ControlEvent, Failure, Role } from "@holdpoint/schemas";
import { append, control, type Context, type Decision } from "./decision.ts";
import type { Ask } from "./participant.ts";
import { expectedOf } from "./processes.ts";
import type { Answer, AskRecord, CoordinatorState, Op, Process } from "./state.ts";

/** What the coordinator adds to every deadline for the answer, in milliseconds. */
export const graceMs = 5_000;

/** What the participants are told beside who, what and how long. */
type Payload = Partial<Omit<Ask, "command" | "operation" | "roles" | "checkpointId" | "remainingMs">>;

export interface Plan {
  readonly operation: Asked;
  readonly checkpointId: string | null;
  /** The roles asked at once, in order. */
  readonly stages: readonly (readonly Role[])[];
  readonly tolerant: boolean;
  readonly payload?: Payload;
}

/** The callers stop before what they call. */
export const callersFirst = [["environment"], ["model"], ["agent"], ["resources"]] as const;
/** What is called serves before its callers call. */
export const calleesFirst = callersFirst.toReversed();
export const everyone = [["environment", "model", "agent", "resources"]] as const;

/** Where a plan stands. */
export type Progress =
  | { readonly status: "done"; readonly failures: readonly Failure[] }
  | { readonly status: "stopped"; readonly failures: readonly Failure[] }
  | { readonly status: "going"; readonly decision: Decision };

interface Asking {
  readonly command: number;
  readonly deadlineAtMs: number;
}

/** The event that asks stage number `stage` (from 0) of `plan`. */
export function ask({ nowMs }: Context, { command, deadlineAtMs }: Asking, plan: Plan, stage = 0): ControlEvent {
  const { operation, checkpointId, stages, tolerant, payload } = plan;
  const shares = tolerant ? stages.length - stage : 1;
  const remainingMs = Math.max(0, Math.floor((deadlineAtMs - nowMs) / shares));
  const roles = [...(stages[stage] ?? [])];
  return { type: "participants.asked", data: { command, operation, roles, checkpointId, remainingMs, ...payload } };
}

/** Where `plan` stands in `op`, whose asks of this operation are all the plan's. */
export function progress(context: Context, op: Op, plan: Plan): Progress {
  const asks = op.asks.filter(({ operation }) => operation === plan.operation);
  const current = asks.at(-1);
  if (current === undefined) return going(append(control(ask(context, op, plan))));
  const missing = missingOf(context.state, current);
  const isOver = missing.length === 0 || (plan.tolerant ? current.passed : op.timedOut);
  if (!isOver) return going(patience(context, op, plan, current));
  const failures = (plan.tolerant ? asks : [current]).flatMap((each) => failuresOf(context.state, each));
  if (!plan.tolerant && (failures.length > 0 || isBlocked(current))) return { status: "stopped", failures };
  if (asks.length >= plan.stages.length) return { status: "done", failures };
  return going(append(control(ask(context, op, plan, asks.length))));
}

function going(decision: Decision): Progress {
  return { status: "going", decision };
}

/** Waits for the current stage, or says that its time is over. */
function patience({ nowMs }: Context, op: Op, plan: Plan, current: AskRecord): Decision {
  const { command } = op;
  const shareMs = current.remainingMs + graceMs / plan.stages.length;
  const untilMs = plan.tolerant ? current.askedAtMs + shareMs : op.deadlineAtMs + graceMs;
  if (nowMs < untilMs) return { kind: "wait", untilMs };
  const data = plan.tolerant ? { command, asked: current.sequence } : { command };
  return append(control({ type: "deadline.passed", data }));
}

/** Who is expected to answer and has not. */
export function missingOf(state: CoordinatorState, { roles, answers }: AskRecord): readonly Process[] {
  return expectedOf(state, roles).filter(({ key }) => !answers.has(key));
}

function isBlocked({ answers }: AskRecord): boolean {
  return [...answers.values()].some(({ blockerCount }) => blockerCount > 0);
}

/** What kept the ask from being obeyed, by name: problems answered, and silence. */
function failuresOf(state: CoordinatorState, asked: AskRecord): Failure[] {
  const answered = [...asked.answers].flatMap(([key, answer]) => failureOf(state, key, answer));
  const silent = missingOf(state, asked).map(({ role, instance, worker }) => ({
    role,
    instance,
    worker,
    problem: {
      code: "deadline_exceeded" as const,
      message: `no answer to ${asked.operation}, asked at sequence ${asked.sequence}`,
    },
  }));
  return [...answered, ...silent];
}

function failureOf({ processes }: CoordinatorState, key: string, { problem }: Answer): Failure[] {
  const process = processes.get(key);
  if (problem === undefined || process === undefined) return [];
  const { role, instance, worker } = process;
  return [{ role, instance, worker, problem }];
}

/** The answers to the asks of `operation`, oldest ask first, with who gave them. */
export function answersTo(
  { processes }: CoordinatorState,
  { asks }: Op,
  operation: Asked,
): readonly { readonly process: Process; readonly answer: Answer }[] {
  return asks
    .filter((asked) => asked.operation === operation)
    .flatMap(({ answers }) => [...answers])
    .flatMap(([key, answer]) => {
      const process = processes.get(key);
      return process === undefined ? [] : [{ process, answer }];
    });
}

/** Failures as words: who, and what they said. At most ten are spelled out. */
export function inWords(failures: readonly Failure[]): string {
  const words = failures.slice(0, 10).map(({ role, instance, worker, problem: { code, message } }) => {
    return `${role} ${instance} (worker ${worker}): ${message} [${code}]`;
  });
  const rest = failures.length - words.length;
  return rest > 0 ? `${words.join("; ")}; and ${rest} more` : words.join("; ");
}

/** The code for several failures: a deadline before all else, else what the first said. */
export function codeOf(
  failures: readonly Failure[],
  otherwise: Failure["problem"]["code"],
): Failure["problem"]["code"] {
  const codes = failures.map(({ problem: { code } }) => code);
  return codes.includes("deadline_exceeded") ? "deadline_exceeded" : (codes[0] ?? otherwise);
}
