/**
 * Commands to the coordinator, and what became of them.
 *
 * 1. A command goes into the stream under a message id of its own, and its outcome is read there. So it survives every restart,
 *    of the broker, of the coordinator, and of whoever waits: the same message id asks for the same outcome.
 * 2. A command that was refused or failed is an outcome, not an error: `resultOf` makes one of it where that is wanted.
 */
import { HoldpointError } from "@holdpoint/errors";
import { type EventLog, parseJson, type StoredMessage } from "@holdpoint/eventsourcing";
import { type Connection, publishCommand } from "@holdpoint/jetstream";
import { type Command, commandSubject, Outcome, outcomeSubject, parseCommand, type Result } from "@holdpoint/schemas";
import { randomUUID } from "node:crypto";
import * as z from "zod";

export interface ControllerOptions {
  readonly connection: Connection;
  readonly log: EventLog;
  readonly run: string;
}

export interface CommandOptions {
  /** Names this command: given again, it is not sent again. Default: a new one. */
  readonly messageId?: string;
  /** Ends the wait. The command stays: it can be asked for again by its message id. */
  readonly signal?: AbortSignal;
  /** The sender's span, as W3C Trace Context spells it: what the coordinator does for this command is found from there. */
  readonly traceparent?: string;
}

export class Controller {
  readonly #options: ControllerOptions;

  constructor(options: ControllerOptions) {
    this.#options = options;
  }

  /**
   * Sends `command` and waits for its outcome, for as long as it takes a coordinator to be there.
   *
   * @throws HoldpointError `invalid_request` where the command is malformed: nothing was sent; `unavailable` where the
   *   connection was closed; `unauthorized` where this user may not command; the signal's reason
   */
  async command(command: Command, options: CommandOptions = {}): Promise<Outcome> {
    const { messageId = randomUUID(), signal, traceparent } = options;
    const { connection, run } = this.#options;
    const { operation, ...body } = command;
    const parsed = parseCommand(operation, body);
    if (!parsed.success) throw malformed(operation, parsed.error);
    signal?.throwIfAborted();
    const draft = { subject: commandSubject(run, operation), body: JSON.stringify(body), messageId, traceparent };
    const sequence = await publishCommand(connection, run, draft, signal).catch((error: unknown) => {
      signal?.throwIfAborted();
      throw error;
    });
    return this.outcomeOf(sequence, signal);
  }

  /** Waits for the outcome of the command at `sequence` of the stream. @throws as `command` */
  async outcomeOf(sequence: number, signal?: AbortSignal): Promise<Outcome> {
    const { log, run } = this.#options;
    const message = await firstOn(log, outcomeSubject(run, sequence), { from: sequence + 1, signal });
    return parseOutcome(message);
  }
}

/** The first message on `subject` from `from` on, whenever it comes. @throws the signal's reason, and as a tail ends */
async function firstOn(
  log: EventLog,
  subject: string,
  { from, signal }: { readonly from: number; readonly signal: AbortSignal | undefined },
): Promise<StoredMessage> {
  const messages: StoredMessage[] = [];
  const arrived = new EventTarget();
  const tail = await log.tail({ from, subjects: [subject] }, (message) => {
    messages.push(message);
    arrived.dispatchEvent(new Event("message"));
  });
  const over = new AbortController();
  try {
    return await new Promise((resolve, reject) => {
      const look = () => messages.slice(0, 1).forEach(resolve);
      arrived.addEventListener("message", look);
      signal?.addEventListener("abort", () => reject(signal.reason), { signal: over.signal });
      tail.ended.catch(reject);
      if (signal?.aborted === true) reject(signal.reason);
      look();
    });
  } finally {
    over.abort();
    await tail.stop();
  }
}

/**
 * What a command that succeeded led to.
 *
 * @throws HoldpointError with the code of the outcome, where it did not succeed; `details.result` holds what was learnt before
 */
export function resultOf(outcome: Outcome): Result {
  if (outcome.ok) return outcome.result;
  const { code, message, details = {} } = outcome.problem;
  const { operation, command, result } = outcome;
  throw new HoldpointError(code, `${operation}: ${message}`, { details: { ...details, command, result } });
}

function parseOutcome({ body, subject }: StoredMessage): Outcome {
  const json = parseJson(body);
  const parsed = Outcome.safeParse(json.ok ? json.value : undefined);
  if (parsed.success) return parsed.data;
  const why = json.ok ? z.prettifyError(parsed.error) : json.why;
  throw new HoldpointError("invalid_checkpoint_state", `the outcome at ${subject} cannot be read: ${why}`);
}

function malformed(operation: string, error: z.ZodError): HoldpointError {
  return new HoldpointError("invalid_request", `the command ${operation} is malformed\n${z.prettifyError(error)}`);
}
