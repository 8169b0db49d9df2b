/**
 * The event log in memory, for tests and simulations: the same promises as the real one, but for durability.
 *
 * What is appended is delivered to the tails before `append` returns, each tail in stream order, also where a delivery appends.
 */
import { HoldpointError } from "@holdpoint/errors";
import type { AppendResult, Draft, EventLog, ReadOptions, StoredMessage, Tail, TailOptions } from "./event-log.ts";
import { MemoryTail } from "./memory-tail.ts";
import { matchesAny } from "./subject-filter.ts";

const longestBatch = 1000;

export class MemoryLog implements EventLog {
  readonly stream: string;
  readonly #now: () => number;
  readonly #messages: StoredMessage[] = [];
  readonly #lastOn = new Map<string, StoredMessage>();
  /** The sequence of each message, by its name. */
  readonly #sequences = new Map<string, number>();
  readonly #tails = new Set<MemoryTail>();
  readonly #encoder = new TextEncoder();

  /** @param now the stream's clock, epoch milliseconds; default: the number of messages stored */
  constructor(stream = "HP_memory", now?: () => number) {
    this.stream = stream;
    this.#now = now ?? (() => this.#messages.length);
  }

  async append(draft: Draft): Promise<AppendResult> {
    return this.appendBatch([draft]);
  }

  async appendBatch(drafts: readonly Draft[]): Promise<AppendResult> {
    check(drafts);
    const last = drafts.at(-1);
    const own = last === undefined ? undefined : this.#sequences.get(nameOf(last));
    if (own !== undefined) return { stored: true, sequence: own };
    if (!drafts.every(({ expected }) => this.#endOf(expected.subject) === expected.sequence)) return { stored: false };
    for (const draft of drafts) this.#store(draft);
    const sequence = this.#messages.length;
    for (const tail of this.#tails) if (!tail.pump()) this.#tails.delete(tail);
    return { stored: true, sequence };
  }

  async lastOn(subject: string): Promise<StoredMessage | undefined> {
    return this.#lastOn.get(subject);
  }

  async get(sequence: number): Promise<StoredMessage> {
    const message = this.#messages[sequence - 1];
    if (message !== undefined) return message;
    throw new HoldpointError("not_found", `${this.stream} has no message ${sequence}`, { details: { sequence } });
  }

  async lastSequence(): Promise<number> {
    return this.#messages.length;
  }

  async read({ from = 1, upTo, subjects }: ReadOptions, deliver: (message: StoredMessage) => void): Promise<void> {
    checkRange(from, upTo);
    if (upTo >= from && upTo > this.#messages.length) {
      throw new HoldpointError("invalid_checkpoint_state", `${this.stream} ends before ${upTo}`, { details: { upTo } });
    }
    for (const message of this.#messages.slice(from - 1, upTo)) {
      if (matchesAny(message.subject, subjects)) deliver(message);
    }
  }

  async tail(options: TailOptions, deliver: (message: StoredMessage) => void): Promise<Tail> {
    const tail = new MemoryTail(this.#messages, options, deliver);
    if (tail.pump()) this.#tails.add(tail);
    return tail;
  }

  #endOf(subject: string): number {
    return this.#lastOn.get(subject)?.sequence ?? 0;
  }

  #store(draft: Draft): void {
    const { subject, body, messageId, controlPlane = false } = draft;
    const sequence = this.#messages.length + 1;
    const timeMs = this.#now();
    const stored = { sequence, subject, messageId, controlPlane, timeMs, body: this.#encoder.encode(body) };
    this.#messages.push(stored);
    this.#lastOn.set(subject, stored);
    this.#sequences.set(nameOf(draft), sequence);
  }
}

/** What a message is known again by. */
function nameOf({ subject, messageId }: Draft): string {
  return `${subject} ${messageId}`;
}

/** @throws HoldpointError `invalid_request` where the server would refuse these drafts whatever the stream holds */
function check(drafts: readonly Draft[]): void {
  const count = drafts.length;
  if (count < 1 || count > longestBatch) {
    throw new HoldpointError("invalid_request", `a batch holds 1 to ${longestBatch} messages, not ${count}`, {
      details: { count },
    });
  }
  const written = new Set<string>();
  for (const { subject, expected, messageId } of drafts) {
    if (messageId === "") throw new HoldpointError("invalid_request", `a message for ${subject} has no message id`);
    if (written.has(expected.subject)) {
      const message = `an expectation about ${expected.subject} comes after a message for it in the same batch`;
      throw new HoldpointError("invalid_request", message, { details: { subject: expected.subject } });
    }
    written.add(subject);
  }
}

function checkRange(from: number, upTo: number): void {
  if (Number.isSafeInteger(from) && Number.isSafeInteger(upTo) && from >= 1) return;
  throw new HoldpointError("invalid_request", `a read needs whole numbers from 1, not ${from} to ${upTo}`);
}
