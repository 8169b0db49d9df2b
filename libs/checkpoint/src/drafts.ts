/** Decisions as messages for the log: bodies, ids, and what each of them expects. */
import { type Draft, encodeEvents, type StoredMessage } from "@holdpoint/eventsourcing";
import { commandSubject, controlSubject, type Event, outcomeSubject, type Problem } from "@holdpoint/schemas";
import type { Decision, Planned } from "./decision.ts";
import type { CoordinatorState } from "./state.ts";

/** Who writes, and what makes its message ids unique: a number that it never uses twice. */
export interface Author {
  readonly incarnation: string;
  readonly number: number;
}

/** The messages of one append, in order. Only the first control message may leave its expectation open. */
export function draftsOf(state: CoordinatorState, messages: readonly Planned[], author: Author): Draft[] {
  return messages.map((planned, at) => draftOf(state, planned, author, `${author.incarnation}.${author.number}.${at}`));
}

function draftOf(state: CoordinatorState, planned: Planned, { incarnation }: Author, messageId: string): Draft {
  const { run, controlSequence } = state;
  switch (planned.to) {
    case "control": {
      const subject = controlSubject(run);
      const expected = planned.expects ?? { subject, sequence: controlSequence };
      return { subject, messageId, expected, ...encodeEvents(incarnation, planned.events) };
    }
    case "outcome": {
      const subject = outcomeSubject(run, planned.outcome.command);
      return { subject, messageId, expected: { subject, sequence: 0 }, body: JSON.stringify(planned.outcome) };
    }
    case "command": {
      const expected = { subject: controlSubject(run), sequence: controlSequence };
      const body = JSON.stringify(planned.body);
      return { subject: commandSubject(run, planned.operation), messageId, expected, body };
    }
    case "log": {
      const fence: Event = { type: "participant.fenced", data: { command: planned.command } };
      return { subject: planned.subject, messageId, expected: planned.expects, ...encodeEvents(incarnation, [fence]) };
    }
  }
}

/** The largest body of a message: 1 MiB is the stream's limit, headers included. */
export const maxMessageBytes = 1_000_000;

const encoder = new TextEncoder();

/** Why the log cannot hold what was decided; undefined where it can. */
export function excessOf(decision: Decision): Problem | undefined {
  if (decision.kind !== "append") return undefined;
  const bytes = Math.max(...decision.messages.map(bytesOf));
  if (bytes <= maxMessageBytes) return undefined;
  const words = `it would take a message of ${bytes} bytes, and the log holds at most ${maxMessageBytes}; name fewer episodes`;
  return { code: "invalid_phase", message: words, details: { bytes, limit: maxMessageBytes } };
}

function bytesOf(planned: Planned): number {
  switch (planned.to) {
    case "control":
      return encoder.encode(encodeEvents("", planned.events).body).length;
    case "outcome":
      return encoder.encode(JSON.stringify(planned.outcome)).length;
    case "command":
    case "log":
      return 0;
  }
}

/**
 * The digest of a message as it rests in the stream (L15): another body, writer, place or time is another message.
 *
 * @param hash SHA-256 of a text's UTF-8 bytes, in lower-case hexadecimal digits
 */
export function anchorOf(
  { sequence, subject, messageId, timeMs, body }: StoredMessage,
  hash: (text: string) => string,
): string {
  return hash(JSON.stringify([sequence, subject, messageId, timeMs, decoder.decode(body)]));
}

const decoder = new TextDecoder();
