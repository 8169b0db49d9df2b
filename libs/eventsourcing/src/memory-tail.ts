import type { StoredMessage, Tail, TailOptions } from "./event-log.ts";
import { matchesAny } from "./subject-filter.ts";

/** A tail of messages in memory: it goes on wherever it stands whenever it is pumped. */
export class MemoryTail implements Tail {
  readonly ended: Promise<void>;
  readonly #messages: readonly StoredMessage[];
  readonly #subjects: readonly string[] | undefined;
  readonly #deliver: (message: StoredMessage) => void;
  #stopped: () => void = () => {};
  #failed: (error: unknown) => void = () => {};
  /** How many messages it has looked at. */
  #seen: number;
  #last: number;
  #isDelivering = false;
  #isOver = false;

  /** @param messages those stored so far; more are added to them */
  constructor(
    messages: readonly StoredMessage[],
    { from, subjects }: TailOptions,
    deliver: (message: StoredMessage) => void,
  ) {
    this.#messages = messages;
    this.#subjects = subjects;
    this.#deliver = deliver;
    this.#seen = from - 1;
    this.#last = from - 1;
    this.ended = new Promise((resolve, reject) => {
      this.#stopped = resolve;
      this.#failed = reject;
    });
    this.ended.catch(() => {}); // also where nobody asks how it ended
  }

  get last(): number {
    return this.#last;
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    this.#stopped();
  }

  /** Delivers what has come. @returns whether it still runs */
  pump(): boolean {
    if (this.#isDelivering) return true; // a delivery appended: the loop below comes to that
    this.#isDelivering = true;
    try {
      this.#drain();
    } catch (error) {
      this.#isOver = true;
      this.#failed(error);
    }
    this.#isDelivering = false;
    return !this.#isOver;
  }

  #drain(): void {
    while (!this.#isOver) {
      const message = this.#messages[this.#seen];
      if (message === undefined) return;
      this.#seen += 1;
      if (!matchesAny(message.subject, this.#subjects)) continue;
      this.#deliver(message);
      this.#last = message.sequence;
    }
  }
}
