/**
 * The fold of the stream as one process follows it, whoever leads, and waiting for it to go on.
 *
 * One at a time waits. Time is the stream's: a timer only wakes who waits.
 */
import { advance, type CoordinatorState, initialState } from "@holdpoint/checkpoint";
import type { EventLog, StoredMessage, Tail } from "@holdpoint/eventsourcing";
import { StreamClock } from "@holdpoint/participant";
import type { FoldSnapshots } from "./fold-snapshot.ts";

export interface FollowerOptions {
  readonly run: string;
  readonly log: EventLog;
  /** The local clock, epoch milliseconds. */
  readonly clock: () => number;
  /** Absent: the stream is folded from its start. */
  readonly snapshots?: FoldSnapshots;
  /** Told of every message before it is folded in, with what is known until then. */
  readonly observe?: (state: CoordinatorState, message: StoredMessage) => void;
  /** Told of every message, after it is folded in. */
  readonly seen?: (message: StoredMessage) => void;
}

/** Longest sleep of a timer of this platform, in milliseconds. */
const maxTimerMs = 2 ** 31 - 1;

export class Follower {
  readonly #options: FollowerOptions;
  readonly #clock: StreamClock;
  readonly #halted = new AbortController();
  #state: CoordinatorState;
  #from = 0;
  #tail: Tail | undefined;
  /** The sequence that the fold has to reach before anything else is done. */
  #awaited = Number.POSITIVE_INFINITY;
  #fault: { readonly error: unknown } | undefined;
  #wake: () => void = () => {};

  constructor(options: FollowerOptions) {
    this.#options = options;
    this.#clock = new StreamClock(options.clock);
    this.#state = initialState(options.run, options.log.stream);
  }

  get state(): CoordinatorState {
    return this.#state;
  }

  /** The sequence after which it has folded the stream itself: 0, or that of the snapshot with which it began. */
  get from(): number {
    return this.#from;
  }

  /** Stream time, epoch milliseconds. */
  get nowMs(): number {
    return this.#clock.nowMs();
  }

  /** Aborted once it was halted. */
  get halted(): AbortSignal {
    return this.#halted.signal;
  }

  /** Folds the stream, as it is now, to its end, and goes on from there. */
  async start(): Promise<void> {
    const { log, snapshots } = this.#options;
    const snapshot = await snapshots?.load();
    if (snapshot !== undefined) {
      this.#state = snapshot.state;
      this.#from = snapshot.last.sequence;
      this.#clock.see(snapshot.last.timeMs);
    }
    this.#tail = await log.tail({ from: this.#state.sequence + 1 }, (message) => this.#fold(message));
    this.#tail.ended.catch((error: unknown) => {
      this.#fault = { error };
      this.#wake();
    });
    await this.caughtUp(await log.lastSequence());
  }

  /** Folds nothing more; whoever waits goes on. */
  async halt(): Promise<void> {
    this.#halted.abort();
    this.#wake();
    await this.#tail?.stop();
  }

  /** Has whoever waits look again. */
  wake(): void {
    this.#wake();
  }

  /**
   * Returns when the fold has come to `sequence`, or was halted.
   *
   * @throws HoldpointError whatever the log throws
   */
  async caughtUp(sequence: number): Promise<void> {
    this.#awaited = sequence;
    while (this.#state.sequence < sequence && !this.#halted.signal.aborted) await this.changed();
    this.#awaited = Number.POSITIVE_INFINITY;
  }

  /**
   * Returns when the fold goes on, at stream time `untilMs`, when it is woken or was halted.
   *
   * @throws HoldpointError whatever the log throws
   */
  async changed(untilMs = Number.POSITIVE_INFINITY): Promise<void> {
    const forMs = Math.max(0, untilMs - this.nowMs);
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      if (Number.isFinite(forMs)) timer = setTimeout(resolve, Math.min(forMs, maxTimerMs));
      if (this.#halted.signal.aborted || this.#fault !== undefined) resolve();
    });
    clearTimeout(timer);
    this.#wake = () => {};
    if (this.#fault !== undefined) throw this.#fault.error;
  }

  /** Saves a snapshot where one is due. */
  saveIfDue(): void {
    void this.#options.snapshots?.saveIfDue(this.#state);
  }

  #fold(message: StoredMessage): void {
    this.#clock.see(message.timeMs);
    this.#options.observe?.(this.#state, message);
    this.#state = advance(this.#state, message);
    this.#options.snapshots?.folded(message);
    this.#options.seen?.(message);
    if (this.#state.sequence >= this.#awaited || concernsControl(message)) this.#wake();
  }
}

/** What sessions say needs no decision. */
function concernsControl({ subject, controlPlane }: StoredMessage): boolean {
  const kind = subject.split(".")[2];
  return controlPlane || (kind !== "log" && kind !== "result");
}
