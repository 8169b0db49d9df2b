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
  readonly #bySubject = new Map<string, StoredMessage[]>();
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
    const own = this.#ownSequence(drafts);
    if (own !== undefined) return { stored: true, sequence: own };
    if (!drafts.every(({ expected }) => this.#endOf(expected.subject) === expected.sequence)) return { stored: false };
    for (const draft of drafts) this.#store(draft);
    const sequence = this.#messages.length;
    for (const tail of this.#tails) if (!tail.pump()) this.#tails.delete(tail);
    return { stored: true, sequence };
  }

  async lastOn(subject: string): Promise<StoredMessage | undefined> {
    return this.#bySubject.get(subject)?.at(-1);
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

  /** The sequence that the last of `drafts` has, if they are stored: then the first of their own follows its expectation. */
  #ownSequence(drafts: readonly Draft[]): number | undefined {
    const anchored = drafts.findIndex(({ subject, expected }) => subject === expected.subject);
    const at = anchored === -1 ? drafts.length - 1 : anchored;
    const draft = drafts[at];
    if (draft === undefined) return undefined;
    const { subject, expected, messageId } = draft;
    const known = this.#bySubject.get(subject) ?? [];
    const found = anchored === -1 ? known.at(-1) : firstAfter(known, expected.sequence);
    return found?.messageId === messageId ? found.sequence + drafts.length - 1 - at : undefined;
  }

  #endOf(subject: string): number {
    return this.#bySubject.get(subject)?.at(-1)?.sequence ?? 0;
  }

  #store({ subject, body, messageId, controlPlane = false }: Draft): void {
    const sequence = this.#messages.length + 1;
    const timeMs = this.#now();
    const stored = { sequence, subject, messageId, controlPlane, timeMs, body: this.#encoder.encode(body) };
    this.#messages.push(stored);
    const known = this.#bySubject.get(subject);
    if (known === undefined) this.#bySubject.set(subject, [stored]);
    else known.push(stored);
  }
}

/** The first of `messages` after `sequence`, looked for from their end, which is near. */
function firstAfter(messages: readonly StoredMessage[], sequence: number): StoredMessage | undefined {
  const before = messages.findLastIndex((message) => message.sequence <= sequence);
  return messages[before + 1];
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
