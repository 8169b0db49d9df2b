/** What the coordinator does next, as data: it appends, reads, or waits. */
import type { Expectation } from "@holdpoint/eventsourcing";
import {
  type ControlEvent,
  type Operation,
  type Outcome,
  outcomeSubject,
  type Problem,
  type Result,
} from "@holdpoint/schemas";
import type { CoordinatorState, Op, Queued } from "./state.ts";

/** One message to be appended. A control message without an expectation of its own expects the end of `control` (L1, L11). */
export type Planned =
  | { readonly to: "control"; readonly events: readonly ControlEvent[]; readonly expects?: Expectation }
  /** Expects that the command has no outcome yet. */
  | { readonly to: "outcome"; readonly outcome: Outcome }
  /** The coordinator's foreign write to a process' log: fences it (L8). */
  | { readonly to: "log"; readonly subject: string; readonly command: number; readonly expects: Expectation }
  /** A command that the leader gives itself. Expects the end of `control`: only a leader commands. */
  | { readonly to: "command"; readonly operation: Operation; readonly body: object };

export type Decision =
  /** All of it or nothing, in this order. */
  | { readonly kind: "append"; readonly messages: readonly Planned[] }
  /** The digest of the message at this sequence is needed. */
  | { readonly kind: "read"; readonly sequence: number }
  /** Nothing to do before this stream time, unless something arrives. */
  | { readonly kind: "wait"; readonly untilMs: number };

/** What a decision rests on beside the state: the stream's time, and what was read on demand. */
export interface Context {
  readonly state: CoordinatorState;
  /** Stream time, epoch milliseconds. */
  readonly nowMs: number;
  /** How long what is open outlives the deadline of its latest command, in milliseconds. */
  readonly leaseGraceMs: number;
  /** The digest of each message that was read since the last append, by sequence; undefined where there is no such message. */
  readonly anchors: ReadonlyMap<number, string | undefined>;
}

export const idle: Decision = { kind: "wait", untilMs: Number.POSITIVE_INFINITY };

export function append(...messages: readonly Planned[]): Decision {
  return { kind: "append", messages };
}

export function control(...events: readonly ControlEvent[]): Planned {
  return { to: "control", events };
}

/** What names the command of an outcome. */
interface Ending {
  readonly command: number;
  readonly operation: string;
}

export function success({ command, operation }: Ending, result: Result): Planned {
  return { to: "outcome", outcome: { ok: true, command, operation, result } };
}

export function failure({ command, operation }: Ending, problem: Problem, result?: Result): Planned {
  return {
    to: "outcome",
    outcome: { ok: false, command, operation, problem, ...(result !== undefined && { result }) },
  };
}

export function endingOf({ command, order }: Op): Ending {
  return { command, operation: order.operation };
}

/** A command that is refused, with its outcome: nothing else has changed. */
export function refuse({ sequence, name }: Queued, problem: Problem, result?: Result): Decision {
  return append(
    control({ type: "command.refused", data: { command: sequence, problem } }),
    failure({ command: sequence, operation: name }, problem, result),
  );
}

/** A command that is done at once, by `events`, with its outcome. */
export function answer(
  command: number,
  operation: string,
  result: Result,
  ...events: readonly ControlEvent[]
): Decision & { readonly kind: "append" } {
  const answered = control({ type: "command.answered", data: { command } }, ...events);
  return { kind: "append", messages: [answered, success({ command, operation }, result)] };
}

/** The command is obeyed from here on, beginning with `events`, all in one message. */
export function accept({ sequence }: Queued, ...events: readonly ControlEvent[]): Planned {
  return control({ type: "command.accepted", data: { command: sequence } }, ...events);
}

/**
 * A further control message of the same batch, where it would make the first one too large. It may not expect anything of a subject
 * that is written before it, so it expects what holds anyway.
 */
export function further(run: string, command: number, event: ControlEvent): Planned {
  return { to: "control", events: [event], expects: { subject: outcomeSubject(run, command), sequence: 0 } };
}

/** A command that was accepted comes to nothing, with its outcome. */
export function fail(op: Op, why: Problem, result: Result): Decision {
  const failed = control({ type: "command.failed", data: { command: op.command, problem: why } });
  return append(failed, failure(endingOf(op), why, result));
}

export function asProblem(code: Problem["code"], message: string, details?: Problem["details"]): Problem {
  return { code, message, ...(details !== undefined && { details }) };
}

/** How an operator sends a command by hand. */
export function typed(run: string, operation: Operation, body: object): string {
  return `nats req hp.${run}.ctl.${operation} '${JSON.stringify(body)}'`;
}
