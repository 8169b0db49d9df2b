/** Tails: every message once, in order, over restarts of the server. */
import type { StoredMessage, Tail, TailOptions } from "@holdpoint/eventsourcing";
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
      this.#check(first, state);
      const before = this.#last;
      const end = await feed(this.#connection, this.#options(), (message) => this.#take(message));
      if (end.type === "failed") throw end.error;
      if (signal.aborted) return;
      fruitless = this.#last > before ? 0 : fruitless + 1;
      await backOff(this.#connection, fruitless, `following ${this.#stream}`, signal);
      state = await streamState(this.#connection, this.#stream, signal);
    }
  }

  #options() {
    const { signal } = this.#stopping;
    return { stream: this.#stream, from: this.#last + 1, subjects: this.#subjects, untilExhausted: false, signal };
  }

  #take(message: StoredMessage): boolean {
    this.#deliver(message);
    this.#last = message.sequence;
    return true;
  }

  #check(first: StreamState, now: StreamState): void {
    const { created, last } = now;
    if (created === first.created && last >= this.#last) return;
    throw damaged(this.#stream, "is not the one that it was: it was rolled back or made anew", {
      last,
      seen: this.#last,
    });
  }
}
