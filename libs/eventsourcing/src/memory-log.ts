/** The event log in memory, for tests and simulations: the same promises as the real one, but for durability. */
import { HoldpointError } from "@holdpoint/errors";
import type { AppendResult, Draft, EventLog, ReadOptions, StoredMessage, Tail, TailOptions } from "./event-log.ts";

export class MemoryLog implements EventLog {
  readonly stream: string;
  readonly #now: () => number;
  readonly #messages: StoredMessage[] = [];
  readonly #lastOn = new Map<string, StoredMessage>();
  readonly #listeners = new Set<(message: StoredMessage) => void>();
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
    if (drafts.length < 1 || drafts.length > 1000) throw batchSize(drafts.length);
    const own = drafts.map((draft) => this.#lastOn.get(draft.subject)?.messageId === draft.messageId);
    const last = drafts.at(-1);
    if (own.at(-1) === true && last !== undefined) return this.#stored(last.subject);
    if (!drafts.every(({ expected }) => this.#endsAt(expected.subject, expected.sequence))) return { stored: false };
    for (const draft of drafts) this.#store(draft);
    return { stored: true, sequence: this.#messages.length };
  }

  async lastOn(subject: string): Promise<StoredMessage | undefined> {
    return this.#lastOn.get(subject);
  }

  async get(sequence: number): Promise<StoredMessage> {
    const message = this.#messages[sequence - 1];
    if (message === undefined) throw new HoldpointError("not_found", `${this.stream} has no message ${sequence}`);
    return message;
  }

  async lastSequence(): Promise<number> {
    return this.#messages.length;
  }

  async read({ from = 1, upTo, subjects }: ReadOptions, deliver: (message: StoredMessage) => void): Promise<void> {
    if (upTo > this.#messages.length) {
      throw new HoldpointError("invalid_checkpoint_state", `${this.stream} ends before ${upTo}`, { details: { upTo } });
    }
    for (const message of this.#messages.slice(from - 1, upTo)) {
      if (matchesAny(message.subject, subjects)) deliver(message);
    }
  }

  async tail({ from, subjects }: TailOptions, deliver: (message: StoredMessage) => void): Promise<Tail> {
    let last = from - 1;
    const listener = (message: StoredMessage) => {
      last = message.sequence;
      if (matchesAny(message.subject, subjects)) deliver(message);
    };
    for (const message of this.#messages.slice(from - 1)) listener(message);
    this.#listeners.add(listener);
    const { ended, end } = ending();
    return {
      get last() {
        return last;
      },
      ended,
      stop: async () => {
        this.#listeners.delete(listener);
        end();
      },
    };
  }

  #stored(subject: string): AppendResult {
    return { stored: true, sequence: this.#lastOn.get(subject)?.sequence ?? 0 };
  }

  #endsAt(subject: string, sequence: number): boolean {
    return (this.#lastOn.get(subject)?.sequence ?? 0) === sequence;
  }

  #store({ subject, body, messageId, controlPlane = false }: Draft): void {
    const sequence = this.#messages.length + 1;
    const stored = {
      sequence,
      subject,
      messageId,
      controlPlane,
      timeMs: this.#now(),
      body: this.#encoder.encode(body),
    };
    this.#messages.push(stored);
    this.#lastOn.set(subject, stored);
    for (const listener of this.#listeners) listener(stored);
  }
}

function ending(): { ended: Promise<void>; end: () => void } {
  const both = { ended: Promise.resolve(), end: () => {} };
  both.ended = new Promise((resolve) => (both.end = resolve));
  return both;
}

/** Whether `subject` matches one of `filters`, in NATS' manner: `*` is one token, a last `>` is one or more. */
export function matchesAny(subject: string, filters: readonly string[] | undefined): boolean {
  return filters === undefined || filters.some((filter) => matches(subject.split("."), filter.split(".")));
}

function matches(tokens: readonly string[], filter: readonly string[]): boolean {
  if (filter.at(-1) === ">" && tokens.length >= filter.length)
    return matches(tokens.slice(0, filter.length - 1), filter.slice(0, -1));
  return tokens.length === filter.length && filter.every((part, at) => part === "*" || part === tokens[at]);
}

function batchSize(count: number): HoldpointError {
  return new HoldpointError("invalid_request", `a batch holds 1 to 1,000 messages, not ${count}`, {
    details: { count },
  });
}
