/** The event log of a run on its JetStream stream. What it promises is written at the port. */
import { HoldpointError } from "@holdpoint/errors";
import type {
  AbortSignalLike,
  AppendResult,
  Draft,
  EventLog,
  ReadOptions,
  StoredMessage,
  Tail,
  TailOptions,
} from "@holdpoint/eventsourcing";
import { streamName } from "@holdpoint/schemas";
import { Appender, fetchMessage, type OnTrouble } from "./append.ts";
import type { Connection } from "./connection.ts";
import { readRange } from "./read.ts";
import { streamState } from "./stream-state.ts";
import { exactSubject } from "./subject.ts";
import { startTail } from "./tail.ts";

export interface LogOptions {
  /** Told when the broker does not store what is appended, such as on a full disk, and with `undefined` when it does again. */
  readonly onTrouble?: OnTrouble;
}

/**
 * The log of `run`. Questions wait for the broker for as long as the connection is open.
 *
 * @throws HoldpointError `invalid_request` where `run` is not a token
 */
export function openLog(connection: Connection, run: string, { onTrouble = () => {} }: LogOptions = {}): EventLog {
  return new JetStreamLog(connection, streamName(run), onTrouble);
}

class JetStreamLog implements EventLog {
  readonly stream: string;
  readonly #connection: Connection;
  readonly #appender: Appender;

  constructor(connection: Connection, stream: string, onTrouble: OnTrouble) {
    this.stream = stream;
    this.#connection = connection;
    this.#appender = new Appender(connection, stream, onTrouble);
  }

  append(draft: Draft, signal?: AbortSignalLike): Promise<AppendResult> {
    return this.#appender.append(draft, signal);
  }

  appendBatch(drafts: readonly Draft[], signal?: AbortSignalLike): Promise<AppendResult> {
    return this.#appender.appendBatch(drafts, signal);
  }

  async lastOn(subject: string): Promise<StoredMessage | undefined> {
    return fetchMessage(this.#connection, this.stream, { last_by_subj: exactSubject(subject) });
  }

  async get(sequence: number): Promise<StoredMessage> {
    const found = await fetchMessage(this.#connection, this.stream, { seq: sequence });
    if (found !== undefined) return found;
    throw new HoldpointError("not_found", `${this.stream} has no message ${sequence}`, { details: { sequence } });
  }

  async lastSequence(): Promise<number> {
    return (await streamState(this.#connection, this.stream)).last;
  }

  read(options: ReadOptions, deliver: (message: StoredMessage) => void): Promise<void> {
    return readRange(this.#connection, this.stream, options, deliver);
  }

  tail(options: TailOptions, deliver: (message: StoredMessage) => void): Promise<Tail> {
    return startTail(this.#connection, this.stream, options, deliver);
  }
}
