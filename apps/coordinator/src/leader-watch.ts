/**
 * Whether the coordinator that leads still lives, as far as the broker can say. It breaks no living leader, and is not relied on
 * for more than the time of an attempt: who leads is decided by the log (L1).
 *
 * It asks the incarnation that leads, again and again. A process that was killed listens no more, which the broker says at
 * once. One that listens and does not answer may be hung, or its machine gone without a word: that takes longer. Where the
 * broker itself cannot be asked nothing is known, and all counting begins anew.
 */
import { setTimeout as pause } from "node:timers/promises";

/** What an incarnation answered: that it lives; nobody listens; somebody listens and is silent; the broker could not be asked. */
export type Sign = "alive" | "absent" | "silent" | "unknown";

export interface LeaderWatchOptions {
  /** Asks once. */
  readonly ask: (incarnation: string) => Promise<Sign>;
  /** Who leads, by the log; undefined: nobody. */
  readonly leader: () => string | undefined;
  /** Told of every sign. */
  readonly heard?: (incarnation: string, sign: Sign) => void;
  /** Told when the leader is found gone. */
  readonly gone: () => void;
  /** Milliseconds between two questions; not always the same, so that those who stand by do not all ask at once. */
  readonly pauseMs: () => number;
}

/** In a row, before it is gone: a leader that has lost its connection has three pauses to renew it. */
const absentTimes = 4;
/** In a row, absent or silent. */
const unansweredTimes = 8;

export class LeaderWatch {
  readonly #options: LeaderWatchOptions;
  #asked: string | undefined;
  #absent = 0;
  #unanswered = 0;

  constructor(options: LeaderWatchOptions) {
    this.#options = options;
  }

  isGone(incarnation: string): boolean {
    const isOver = this.#absent >= absentTimes || this.#unanswered >= unansweredTimes;
    return this.#asked === incarnation && isOver;
  }

  /** Watches until `signal` is aborted. @throws HoldpointError `unauthorized` where the broker does not let it ask */
  async run(signal: AbortSignal): Promise<void> {
    const { ask, leader, gone, pauseMs } = this.#options;
    while (!signal.aborted) {
      const incarnation = leader();
      if (incarnation !== undefined) this.#note(incarnation, await ask(incarnation));
      if (incarnation !== undefined && this.isGone(incarnation)) gone();
      await pause(pauseMs(), undefined, { signal, ref: false }).catch(() => undefined);
    }
  }

  #note(incarnation: string, sign: Sign): void {
    if (incarnation !== this.#asked || sign === "alive" || sign === "unknown") {
      this.#absent = 0;
      this.#unanswered = 0;
    }
    this.#asked = incarnation;
    this.#options.heard?.(incarnation, sign);
    if (sign === "alive" || sign === "unknown") return;
    this.#unanswered += 1;
    this.#absent = sign === "absent" ? this.#absent + 1 : 0;
  }
}
