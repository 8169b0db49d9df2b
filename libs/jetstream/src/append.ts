/**
 * Storing a message, or a batch, exactly once (L1).
 *
 * 1. An append ends with an acknowledgement, with a refused expectation, or with `unavailable` where the caller gives up.
 *    Everything else (no answer, a broken connection, a full disk) is tried again, and never ends it.
 * 2. Before another try, and when an expectation is refused, the leader is asked whether the message is there: the
 *    acknowledgement may have been lost. The server's own memory of message ids is short, and checked after expectations.
 * 3. Where a draft expects the end of its own subject, its message, if stored, is the first there after the expected one,
 *    whoever wrote since. Else it is the last of its subject, which has one writer with one append in flight.
 */
import type { AbortSignalLike, AppendResult, Draft, StoredMessage } from "@holdpoint/eventsourcing";
import { HoldpointError } from "@holdpoint/errors";
import { controlPlaneHeader } from "@holdpoint/schemas";
import { headers, type MsgHdrs, nuid } from "nats";
import { type Connection, internals } from "./connection.ts";
import { type Answer, readAnswer } from "./publish-answer.ts";
import { fetched, messageIdHeader } from "./message.ts";
import { backOff, persist } from "./persist.ts";
import { exactSubject } from "./subject.ts";

/** Told what keeps appends from being stored; `undefined` when they are stored again. */
export type OnTrouble = (text: string | undefined) => void;

type Send = () => Promise<Answer | undefined>;

/** The most messages of an atomic batch, by default of the server and in nats.conf. */
const longestBatch = 1000;
const tryTimeoutMs = 2000;
const batchTimeoutMs = 10_000;
/** How long an append may go unacknowledged before that is trouble. */
const silenceMs = 5000;

export class Appender {
  readonly #connection: Connection;
  readonly #stream: string;
  readonly #onTrouble: OnTrouble;
  #trouble: string | undefined;

  constructor(connection: Connection, stream: string, onTrouble: OnTrouble) {
    this.#connection = connection;
    this.#stream = stream;
    this.#onTrouble = onTrouble;
  }

  async append(draft: Draft, signal?: AbortSignalLike): Promise<AppendResult> {
    check(draft);
    return this.#untilKnown([draft], () => this.#publish(draft, this.#headers(draft), tryTimeoutMs), signal);
  }

  async appendBatch(drafts: readonly Draft[], signal?: AbortSignalLike): Promise<AppendResult> {
    if (drafts.length < 1 || drafts.length > longestBatch) {
      throw new HoldpointError("invalid_request", `a batch holds 1 to ${longestBatch} messages, not ${drafts.length}`, {
        details: { count: drafts.length },
      });
    }
    for (const draft of drafts) check(draft);
    return this.#untilKnown(drafts, () => this.#publishBatch(drafts), signal);
  }

  async #untilKnown(drafts: readonly Draft[], send: Send, signal: AbortSignalLike | undefined): Promise<AppendResult> {
    const doing = `appending to ${this.#stream}`;
    const start = performance.now();
    for (let tries = 0; ; tries++) {
      await this.#connection.whenConnected(doing, signal);
      const answer = await this.#try(doing, send, signal);
      if (answer.type === "stored") return this.#done(answer.sequence);
      const own = await this.#findOwn(drafts, signal);
      if (own !== undefined) return this.#done(own);
      if (answer.type === "moved") return { stored: false };
      if (answer.refused) this.#report(answer.why);
      else if (performance.now() - start > silenceMs) this.#report(silence(this.#stream));
      await backOff(this.#connection, tries, doing, signal);
    }
  }

  async #try(doing: string, send: Send, signal: AbortSignalLike | undefined): Promise<Answer> {
    try {
      const answer = await this.#connection.whileConnected(doing, send, signal);
      return answer ?? { type: "again", why: "the answer of the server was empty", refused: false };
    } catch (error) {
      if (!HoldpointError.is(error, "unavailable") || this.#connection.isClosed || signal?.aborted === true)
        throw error;
      return { type: "again", why: error.message, refused: false };
    }
  }

  #done(sequence: number): AppendResult {
    this.#report(undefined);
    return { stored: true, sequence };
  }

  #report(trouble: string | undefined): void {
    if (trouble === this.#trouble) return;
    this.#trouble = trouble;
    this.#onTrouble(trouble);
  }

  /** The sequence that the last of `drafts` has, if they are stored. */
  async #findOwn(drafts: readonly Draft[], signal: AbortSignalLike | undefined): Promise<number | undefined> {
    const anchored = drafts.findIndex(({ subject, expected }) => subject === expected.subject);
    const at = anchored === -1 ? drafts.length - 1 : anchored;
    const draft = drafts[at];
    if (draft === undefined) return undefined;
    const { subject, expected } = draft;
    const query = anchored === -1 ? { last_by_subj: subject } : { seq: expected.sequence + 1, next_by_subj: subject };
    const found = await fetchMessage(this.#connection, this.#stream, query, signal);
    return found?.messageId === draft.messageId ? found.sequence + drafts.length - 1 - at : undefined;
  }

  /** As few as can be: they rest with every message, and every reader parses them. */
  #headers({ subject, messageId, controlPlane = false, expected }: Draft): MsgHdrs {
    const all = headers();
    all.set(messageIdHeader, messageId);
    all.set("Nats-Expected-Last-Subject-Sequence", String(expected.sequence));
    if (expected.subject !== subject) all.set("Nats-Expected-Last-Subject-Sequence-Subject", expected.subject);
    if (controlPlane) all.set(controlPlaneHeader, "1");
    return all;
  }

  async #publish({ subject, body }: Draft, all: MsgHdrs, timeout: number): Promise<Answer | undefined> {
    const { nats } = internals(this.#connection);
    const reply = await nats.request(subject, body, { headers: all, timeout });
    return readAnswer(reply.data, this.#stream, `appending to ${subject}`);
  }

  /** The first message and the last are answered; of a lost one between them the last answer tells. */
  async #publishBatch(drafts: readonly Draft[]): Promise<Answer | undefined> {
    const { nats } = internals(this.#connection);
    const batchId = nuid.next();
    let answer: Answer | undefined;
    for (const [index, draft] of drafts.entries()) {
      const all = this.#headers(draft);
      const isLast = index === drafts.length - 1;
      all.set("Nats-Batch-Id", batchId);
      all.set("Nats-Batch-Sequence", String(index + 1));
      if (isLast) all.set("Nats-Batch-Commit", "1");
      if (index > 0 && !isLast) nats.publish(draft.subject, draft.body, { headers: all });
      else answer = await this.#publish(draft, all, batchTimeoutMs);
      if (answer !== undefined) break;
    }
    return answer;
  }
}

/** Which message: the last of an exact subject, the one of a sequence, or the first from there on whose subject matches. */
type Query = { readonly last_by_subj: string } | { readonly seq: number; readonly next_by_subj?: string };

/** A message read from the leader; `undefined` where there is none. */
export async function fetchMessage(
  connection: Connection,
  stream: string,
  query: Query,
  signal?: AbortSignalLike,
): Promise<StoredMessage | undefined> {
  const { manager } = internals(connection);
  const ask = () => manager.streams.getMessage(stream, query);
  const found = await persist(connection, `reading from ${stream}`, ask, signal);
  return found === null ? undefined : fetched(found);
}

/** A server that could not write, such as on a full disk, is silent from then on, and also when there is room again. */
function silence(stream: string): string {
  const cause = "it is overloaded, or could not write to its disk: then its log says so, and it has to be restarted";
  return `the broker has not acknowledged an append to ${stream} for ${silenceMs / 1000} s: ${cause} once there is room`;
}

function check({ subject, expected, messageId }: Draft): void {
  exactSubject(subject);
  exactSubject(expected.subject);
  if (messageId === "") throw new HoldpointError("invalid_request", `a message for ${subject} has no message id`);
}
