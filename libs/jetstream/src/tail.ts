/** Tails: every message once, in order, over restarts of the server. */
import { HoldpointError } from "@holdpoint/errors";
import type { StoredMessage, Tail, TailOptions } from "@holdpoint/eventsourcing";
import { fetchMessage } from "./append.ts";
import type { Connection } from "./connection.ts";
import { feed } from "./feed.ts";
import { backOff } from "./persist.ts";
import { damaged, type StreamState, streamState } from "./stream-state.ts";

export async function startTail(
  connection: Connection,
  stream: string,
  options: TailOptions,
  deliver: (message: StoredMessage) => void,
): Promise<Tail> {
  const running = new RunningTail(connection, stream, options, deliver);
  await running.start();
  return running;
}

class RunningTail implements Tail {
  readonly #connection: Connection;
  readonly #stream: string;
  readonly #subjects: readonly string[] | undefined;
  readonly #deliver: (message: StoredMessage) => void;
  readonly #stopping = new AbortController();
  #last: number;
  /** When the stream stored what was delivered last. */
  #lastTimeMs: number | undefined;
  #ended: Promise<void> = Promise.resolve();

  constructor(
    connection: Connection,
    stream: string,
    { from, subjects }: TailOptions,
    deliver: (message: StoredMessage) => void,
  ) {
    this.#connection = connection;
    this.#stream = stream;
    this.#subjects = subjects;
    this.#deliver = deliver;
    this.#last = from - 1;
  }

  get last(): number {
    return this.#last;
  }

  get ended(): Promise<void> {
    return this.#ended;
  }

  async start(): Promise<void> {
    const state = await streamState(this.#connection, this.#stream);
    this.#ended = this.#run(state);
    this.#ended.catch(() => undefined); // also where nobody asks
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#ended.catch(() => undefined);
  }

  async #run(first: StreamState): Promise<void> {
    try {
      await this.#follow(first);
    } catch (error) {
      if (!this.#stopping.signal.aborted) throw error;
    }
  }

  async #follow(first: StreamState): Promise<void> {
    const { signal } = this.#stopping;
    let state = first;
    let fruitless = 0;
    for (;;) {
      await this.#check(first, state);
      const before = this.#last;
      const end = await feed(this.#connection, this.#options(), (message) => this.#take(message));
      if (end.type === "failed") throw end.error;
      if (signal.aborted) return;
      fruitless = this.#last > before ? 0 : fruitless + 1;
      await backOff(this.#connection, fruitless, `following ${this.#stream}`, signal);
      state = await this.#stateAgain();
    }
  }

  #options() {
    const { signal } = this.#stopping;
    return { stream: this.#stream, from: this.#last + 1, subjects: this.#subjects, untilExhausted: false, signal };
  }

  #take(message: StoredMessage): boolean {
    this.#deliver(message);
    this.#last = message.sequence;
    this.#lastTimeMs = message.timeMs;
    return true;
  }

  async #stateAgain(): Promise<StreamState> {
    try {
      return await streamState(this.#connection, this.#stream, this.#stopping.signal);
    } catch (error) {
      if (!HoldpointError.is(error, "not_found")) throw error;
      throw damaged(this.#stream, "is gone", { seen: this.#last });
    }
  }

  /** Whether what was delivered last is still there: a server that was damaged gives its sequence to another message. */
  async #check(first: StreamState, now: StreamState): Promise<void> {
    const { created, last } = now;
    const same = created === first.created && last >= this.#last && (await this.#hasLast());
    if (same) return;
    throw damaged(this.#stream, "is not the one that it was: it was rolled back or made anew", {
      last,
      seen: this.#last,
    });
  }

  async #hasLast(): Promise<boolean> {
    if (this.#lastTimeMs === undefined) return true;
    const { signal } = this.#stopping;
    const found = await fetchMessage(this.#connection, this.#stream, { seq: this.#last }, signal);
    return found?.timeMs === this.#lastTimeMs;
  }
}
