/** Reads that end at exactly the sequence asked for, or fail (L15). */
import { HoldpointError } from "@holdpoint/errors";
import type { ReadOptions, StoredMessage } from "@holdpoint/eventsourcing";
import { fetchMessage } from "./append.ts";
import type { Connection } from "./connection.ts";
import { feed } from "./feed.ts";
import { backOff } from "./persist.ts";
import { damaged, type StreamState, streamState } from "./stream-state.ts";

export async function readRange(
  connection: Connection,
  stream: string,
  options: ReadOptions,
  deliver: (message: StoredMessage) => void,
): Promise<void> {
  const { from = 1, upTo } = options;
  checkRange(from, upTo);
  if (upTo < from) return;
  await new Reading(connection, stream, { ...options, from }, deliver).run();
}

/** Feeds without a message before a read is given up, with pauses of up to a second between them. */
const patience = 30;

class Reading {
  readonly #connection: Connection;
  readonly #stream: string;
  readonly #upTo: number;
  readonly #subjects: readonly string[] | undefined;
  readonly #deliver: (message: StoredMessage) => void;
  /** The sequence from which on nothing has been delivered yet. */
  #next: number;

  constructor(
    connection: Connection,
    stream: string,
    { from, upTo, subjects }: ReadOptions & { readonly from: number },
    deliver: (message: StoredMessage) => void,
  ) {
    this.#connection = connection;
    this.#stream = stream;
    this.#upTo = upTo;
    this.#subjects = subjects;
    this.#deliver = deliver;
    this.#next = from;
  }

  async run(): Promise<void> {
    const source = { stream: this.#stream, subjects: this.#subjects, untilExhausted: true };
    const wanted = () => this.#upTo - this.#next + 1;
    let fruitless = 0;
    while (wanted() > 0) {
      checkStream(await streamState(this.#connection, this.#stream), this.#next, this.#upTo);
      const before = this.#next;
      const end = await feed(this.#connection, { ...source, from: this.#next, wanted }, (message) =>
        this.#take(message),
      );
      if (end.type === "failed") throw end.error;
      if (end.type === "stopped" && !(await this.#hasMore())) break;
      fruitless = this.#next > before ? 0 : fruitless + 1;
      if (wanted() > 0) await this.#pause(fruitless);
    }
    if (this.#subjects === undefined && wanted() > 0) throw this.#gap(undefined);
  }

  /** The consumer was lost, or its server is behind the leader. */
  async #pause(fruitless: number): Promise<void> {
    const doing = `reading ${this.#stream} from ${this.#next}`;
    if (fruitless > patience) throw new HoldpointError("unavailable", `${doing}: the broker delivers nothing more`);
    await backOff(this.#connection, fruitless, doing);
  }

  #take(message: StoredMessage): boolean {
    const { sequence } = message;
    if (this.#subjects === undefined && sequence !== this.#next) throw this.#gap(sequence);
    if (sequence <= this.#upTo) this.#deliver(message);
    this.#next = sequence + 1;
    return this.#next <= this.#upTo;
  }

  /** Whether the leader has more of the range: a consumer's own count of what is left is not the last word. */
  async #hasMore(): Promise<boolean> {
    if (this.#next > this.#upTo) return false;
    for (const subject of this.#subjects ?? [">"]) {
      const found = await fetchMessage(this.#connection, this.#stream, { seq: this.#next, next_by_subj: subject });
      if (found !== undefined && found.sequence <= this.#upTo) return true;
    }
    return false;
  }

  #gap(found: number | undefined): HoldpointError {
    const what = `has a gap: ${found ?? "nothing"} follows where ${this.#next} was expected`;
    return damaged(this.#stream, what, { expected: this.#next, found });
  }
}

function checkRange(from: number, upTo: number): void {
  if (Number.isSafeInteger(from) && Number.isSafeInteger(upTo) && from >= 1) return;
  throw new HoldpointError("invalid_request", `a read needs whole numbers from 1, not ${from} to ${upTo}`);
}

function checkStream(state: StreamState, from: number, upTo: number): void {
  const { stream, first, last, missing } = state;
  if (last < upTo)
    throw damaged(stream, `ends at ${last}, before ${upTo}: it was damaged, rolled back or made anew`, { last, upTo });
  if (first > from)
    throw damaged(stream, `begins at ${first}, after ${from}: what was before was cut off`, { first, from });
  if (missing > 0) throw damaged(stream, `has lost ${missing} messages between ${first} and ${last}`, { missing });
}
