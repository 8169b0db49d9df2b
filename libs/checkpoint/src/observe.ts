/**
 * What each message of the stream says to whoever watches the control plane: the spans that end with it, and what is measured by it.
 *
 *  1. It has no fold of its own. It looks at the coordinator's state before the message, so that a successor goes on where the
 *     leader before it was killed.
 *  2. All times are the stream's.
 *  3. Spans are named by what they are about: every coordinator gives the same span the same names.
 */
import type { Recorded, StoredMessage } from "@holdpoint/eventsourcing";
import type { Outcome, Writer } from "@holdpoint/schemas";
import { missingOf } from "./asks.ts";
import { applied, type Handlers, type Place } from "./handlers.ts";
import { type Input, inputsOf, type LogEvent } from "./input.ts";
import type { Observed, SpanRecord } from "./observation.ts";
import { processKey } from "./processes.ts";
import { askSpan, type End, operationSpans, rootOf } from "./spans.ts";
import type { AskRecord, CoordinatorState, Op, Open, Process } from "./state.ts";

const nothing: Observed = { spans: [], measurements: [] };

/** What `message` says, which is the next one that `state` will fold in. Total: it never throws. */
export function observe(state: CoordinatorState, message: StoredMessage): Observed {
  const seen = inputsOf(message).map((input) => observed(state, input, message.timeMs));
  return {
    spans: seen.flatMap(({ spans }) => spans),
    measurements: seen.flatMap(({ measurements }) => measurements),
  };
}

function observed(state: CoordinatorState, input: Input, timeMs: number): Observed {
  switch (input.kind) {
    case "outcome": {
      const op = state.ops.get(input.command);
      return op === undefined ? nothing : ended(state, op, { timeMs, code: codeOf(input.outcome) });
    }
    case "control":
      return applied(watchers, { state, ...nothing }, input.recorded.event, input.recorded);
    case "log":
      return said(state, input.writer, input.recorded);
    case "command":
    case "unreadable":
      return nothing;
  }
}

/** `ok`, or what went wrong. */
function codeOf(outcome: Outcome | undefined): string {
  if (outcome === undefined) return "unavailable";
  return outcome.ok ? "ok" : outcome.problem.code;
}

/** What a control event says, beside the state before its message. */
interface Watched extends Observed {
  readonly state: CoordinatorState;
}

const watchers: Handlers<Watched> = {
  "command.refused": ({ state }, { command, problem: { code } }, { timeMs }) => ({
    state,
    ...answered(state, command, { timeMs, code }),
  }),
  "command.answered": ({ state }, { command }, { timeMs }) => ({
    state,
    ...answered(state, command, { timeMs, code: "ok" }),
  }),
  "checkpoint.proceeded": ({ state }, _data, { timeMs }) => ({ state, ...held(state.open, timeMs) }),
  "checkpoint.committed": ({ state }, _data, { timeMs }) => {
    const atMs = state.open?.captured?.atMs;
    return { state, ...(atMs === undefined ? nothing : measured("holdpoint_durability_lag_seconds", timeMs - atMs)) };
  },
  "resume.ended": ({ state }, { command }, { timeMs }) => {
    const past = command === null ? undefined : state.ops.get(command)?.past;
    return { state, ...held(past, timeMs), spans: past === undefined ? [] : [rootOf(past, timeMs)] };
  },
};

/** Once for each hold: the first proceed ends it, else the resume. */
function held(open: Open | undefined, timeMs: number): Observed {
  if (open === undefined || open.proceeded) return nothing;
  return measured("holdpoint_hold_seconds", timeMs - open.openedAtMs, { kind: open.kind });
}

type Duration = `holdpoint_${"hold" | "durability_lag" | "operation" | "ask"}_seconds`;

function measured(name: Duration, ms: number, labels: Readonly<Record<string, string>> = {}): Observed {
  return { spans: [], measurements: [{ name, value: ms / 1000, labels }] };
}

/** A command that was answered or refused when its turn came. Who only asks how things stand leaves no span. */
function answered(state: CoordinatorState, command: number, end: End): Observed {
  const queued = state.queue.get(command);
  if (queued === undefined) return nothing;
  const { read, atMs, sender } = queued;
  if (!read.ok) return operationSeconds("malformed", atMs, end);
  const { operation } = read.command;
  const { measurements } = operationSeconds(operation, atMs, end);
  if (operation === "status" || operation === "discover") return { spans: [], measurements };
  return {
    spans: operationSpans(state, { command, order: read.command, atMs, sender, joins: undefined }, end),
    measurements,
  };
}

/** A command that was under way. Who was asked and never answered has a span until now. */
function ended(state: CoordinatorState, op: Op, end: End): Observed {
  const silence = { timeMs: end.timeMs, code: end.code === "ok" ? "deadline_exceeded" : end.code };
  const silent = op.asks.flatMap((ask) =>
    silentIn(state, op, ask).map((process) => askSpan(op, ask, process, silence)),
  );
  const { measurements } = operationSeconds(op.order.operation, op.atMs, end);
  return { spans: [...silent, ...operationSpans(state, op, end)], measurements };
}

/** Whoever has announced itself since an ask that is over was not asked. */
function silentIn(state: CoordinatorState, op: Op, ask: AskRecord): readonly Process[] {
  const isLast = ask === op.asks.at(-1);
  return missingOf(state, ask).filter(({ announcedSequence }) => isLast || announcedSequence < ask.sequence);
}

function operationSeconds(operation: string, atMs: number, { timeMs, code }: End): Observed {
  return measured("holdpoint_operation_seconds", timeMs - atMs, { operation, outcome: code });
}

function said(state: CoordinatorState, writer: Writer, recorded: Recorded<LogEvent>): Observed {
  const { type } = recorded.event;
  if (type === "participant.answered") return answerGiven(state, writer, recorded.event.data, recorded);
  if (type === "participant.fenced") return fence(writer, "coordinator");
  if (type !== "participant.announced") return nothing;
  const known = state.processes.get(processKey(writer));
  return known?.expected === true && !known.leaving ? fence(writer, "successor") : nothing;
}

type DataOfAnswer = Extract<LogEvent, { type: "participant.answered" }>["data"];

function answerGiven(state: CoordinatorState, writer: Writer, data: DataOfAnswer, place: Place): Observed {
  const { asked, operation, problem } = data;
  const op = state.ops.get(state.askers.get(asked) ?? 0);
  const ask = op?.asks.find(({ sequence }) => sequence === asked);
  if (op === undefined || ask?.operation !== operation) return nothing;
  const { timeMs, incarnation } = place;
  const span = askSpan(op, ask, { ...writer, incarnation }, { timeMs, code: problem?.code ?? "ok" });
  const attributes = { ...span.attributes, ...countsIn(data) };
  const { measurements } = measured("holdpoint_ask_seconds", timeMs - ask.askedAtMs, { operation, role: writer.role });
  return { spans: [{ ...span, attributes }], measurements };
}

function countsIn({ operation, blockerCount = 0, restarts = [] }: DataOfAnswer): SpanRecord["attributes"] {
  return operation === "prepare" ? { "holdpoint.blockers": blockerCount, "holdpoint.restarts": restarts.length } : {};
}

function fence({ role }: Writer, by: "successor" | "coordinator"): Observed {
  return { spans: [], measurements: [{ name: "holdpoint_fences_total", value: 1, labels: { role, by } }] };
}
