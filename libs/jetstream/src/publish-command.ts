/** Storing a command: its subject has many writers, so nothing is expected of it, and its message id keeps it single. */
import type { AbortSignalLike } from "@holdpoint/eventsourcing";
import { streamName } from "@holdpoint/schemas";
import { headers } from "nats";
import { type Connection, internals } from "./connection.ts";
import { messageIdHeader, traceHeader } from "./message.ts";
import { backOff, persist } from "./persist.ts";
import { readAnswer } from "./publish-answer.ts";
import { exactSubject } from "./subject.ts";

export interface CommandDraft {
  /** Exact, and one of the run's stream. */
  readonly subject: string;
  readonly body: string;
  /** The same message again within the stream's duplicate window (10 minutes) is not stored again. */
  readonly messageId: string;
  /** The sender's span, as W3C Trace Context spells it: the coordinator's spans of this command are found from there. */
  readonly traceparent?: string | undefined;
}

const tryTimeoutMs = 2000;

/**
 * Stores `draft` in the stream of `run`, over timeouts, reconnects and restarts of the server.
 *
 * @returns its sequence; of the first one, where the same message is there already
 * @throws HoldpointError `unavailable` where the connection was closed or `signal` aborted: not known to be stored;
 *   `unauthorized` where the user may not command; `invalid_request` where the message can never be stored
 */
export async function publishCommand(
  connection: Connection,
  run: string,
  draft: CommandDraft,
  signal?: AbortSignalLike,
): Promise<number> {
  const stream = streamName(run);
  const doing = `commanding on ${exactSubject(draft.subject)}`;
  const all = headers();
  all.set(messageIdHeader, draft.messageId);
  if (draft.traceparent !== undefined) all.set(traceHeader, draft.traceparent);
  const publish = async () => {
    const { nats } = internals(connection);
    const reply = await nats.request(draft.subject, draft.body, { headers: all, timeout: tryTimeoutMs });
    return readAnswer(reply.data, stream, doing);
  };
  for (let tries = 0; ; tries++) {
    const answer = await persist(connection, doing, publish, signal);
    if (answer?.type === "stored") return answer.sequence;
    await backOff(connection, tries, doing, signal);
  }
}
