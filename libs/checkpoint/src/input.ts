/**
 * What the coordinator reads of the stream. Reading never throws: what cannot be read becomes an input of its own, so that it is
 * refused in the log and the next message is handled as if nothing had been.
 */
import {
  decodeEvents,
  type EventSchema,
  eventSchema,
  parseJson,
  type Recorded,
  type StoredMessage,
} from "@holdpoint/eventsourcing";
import {
  type Command,
  ControlEvent,
  controlPlaneTypes,
  type LogEventOf,
  logEvents,
  Outcome,
  operations,
  parseCommand,
  parseStreamSubject,
  type Problem,
  type Writer,
} from "@holdpoint/schemas";
import * as z from "zod";

/** The largest body of a command. */
export const maxCommandBytes = 524_288;

/** The longest text of a refusal, in characters: a malformed message is never repeated whole. */
const maxWords = 2_000;

/** What a log says; only what concerns the control plane is read. */
export type LogEvent = LogEventOf<keyof typeof logEvents>;

/** What stood on `cmd.<name>`, understood or not. */
export interface ReadCommand {
  readonly name: string;
  readonly read: { readonly ok: true; readonly command: Command } | { readonly ok: false; readonly problem: Problem };
}

export type Input =
  | ({ readonly kind: "command" } & ReadCommand)
  | { readonly kind: "outcome"; readonly command: number; readonly outcome: Outcome | undefined }
  | { readonly kind: "control"; readonly recorded: Recorded<ControlEvent> }
  | { readonly kind: "log"; readonly writer: Writer; readonly recorded: Recorded<LogEvent> }
  | { readonly kind: "unreadable"; readonly subject: string; readonly problem: Problem };

const controlEvents = eventSchema(ControlEvent);

/** Only these types are parsed: the coordinator passes over what sessions do. */
const logSchemas: { readonly [R in keyof typeof logEvents]: EventSchema<LogEvent> } = {
  environment: { schema: logEvents.environment, types: controlPlaneTypes },
  agent: { schema: logEvents.agent, types: controlPlaneTypes },
  resources: { schema: logEvents.resources, types: controlPlaneTypes },
  model: { schema: logEvents.model, types: controlPlaneTypes },
  trainer: { schema: logEvents.trainer, types: new Set() },
};

/** What processes say; of that only what is marked is read. */
const ofProcesses = /^hp\.[^.]+\.(?:log|result)\./;

/** What `message` says to the coordinator, in order; nothing where it does not concern the control plane. */
export function inputsOf(message: StoredMessage): readonly Input[] {
  if (!message.controlPlane && ofProcesses.test(message.subject)) return [];
  const address = parseStreamSubject(message.subject);
  switch (address?.kind) {
    case undefined:
      return [unreadable(message.subject, "not a subject of this protocol")];
    case "command":
      return [{ kind: "command", name: address.name.slice(0, 128), read: readCommand(address.name, message.body) }];
    case "outcome":
      return [{ kind: "outcome", command: address.sequence, outcome: readOutcome(message.body) }];
    case "control":
      return controlInputs(message);
    case "log":
    case "result":
      return logInputs(message, address.writer);
  }
}

function controlInputs(message: StoredMessage): readonly Input[] {
  const { events, problems } = decodeEvents(message, controlEvents);
  return [
    ...events.map((recorded) => ({ kind: "control" as const, recorded })),
    ...problems.map((problem) => unreadable(message.subject, problem)),
  ];
}

function logInputs(message: StoredMessage, writer: Writer): readonly Input[] {
  const { events, problems } = decodeEvents(message, logSchemas[writer.role]);
  return [
    ...events.map((recorded) => ({ kind: "log" as const, writer, recorded })),
    ...problems.map((problem) => unreadable(message.subject, problem)),
  ];
}

function unreadable(subject: string, message: string): Input {
  const problem: Problem = { code: "invalid_request", message: message.slice(0, maxWords) };
  return { kind: "unreadable", subject: subject.slice(0, 256), problem };
}

function readOutcome(body: Uint8Array): Outcome | undefined {
  const json = parseJson(body);
  return json.ok ? Outcome.safeParse(json.value).data : undefined;
}

function readCommand(name: string, body: Uint8Array): ReadCommand["read"] {
  const operation = operations.find((known) => known === name);
  if (operation === undefined) return invalid(`no such operation; expected one of ${operations.join(", ")}`);
  if (body.length > maxCommandBytes) {
    return invalid(`a command has at most ${maxCommandBytes} bytes, this one has ${body.length}`);
  }
  const json = parseJson(body.length === 0 ? emptyObject : body);
  if (!json.ok) return invalid(`${operation}: ${json.why}; expected a JSON object`);
  const parsed = parseCommand(operation, json.value);
  if (!parsed.success) return invalid(`${operation}: ${z.prettifyError(parsed.error)}`);
  return { ok: true, command: parsed.data };
}

const emptyObject = new TextEncoder().encode("{}");

function invalid(message: string): ReadCommand["read"] {
  return { ok: false, problem: { code: "invalid_request", message: message.slice(0, maxWords) } };
}
