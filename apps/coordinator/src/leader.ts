/**
 * The loop around the decisions: tail, fold, react, append. It decides nothing.
 *
 *  1. One append at a time, and the next decision only once everything appended is folded in.
 *  2. It leads from the acknowledgement of `coordinator.started`, which fences the one before (L1), until somebody else's stands
 *     in the log: then it stops, and never appends again (L11).
 *  3. Time is the stream's. A timer only asks the decisions again; what is over is over by an event (L10).
 */
import {
  advance,
  anchorOf,
  type CoordinatorState,
  type Decision,
  draftsOf,
  initialState,
  isLeader,
  react,
} from "@holdpoint/checkpoint";
import { HoldpointError } from "@holdpoint/errors";
import { encodeEvents, type EventLog, type StoredMessage, type Tail } from "@holdpoint/eventsourcing";
import { StreamClock } from "@holdpoint/participant";
import { controlSubject, type ControlEvent, type StreamPromise } from "@holdpoint/schemas";

export interface LeaderOptions {
  readonly run: string;
  readonly log: EventLog;
  /** Unique for each life of the process. */
  readonly incarnation: string;
  /** What the server promises about the stream. */
  readonly promise: StreamPromise;
  /** How long what is open outlives the deadline of its latest command, in milliseconds. */
  readonly leaseGraceMs: number;
  /** The local clock, epoch milliseconds. */
  readonly clock: () => number;
  /** Lower-case hexadecimal SHA-256 of a text. */
  readonly hash: (text: string) => string;
  /** Told of every message, after it is folded in. */
  readonly seen?: (message: StoredMessage) => void;
  /** Told of every decision that is in the log. */
  readonly decided?: (state: CoordinatorState, decision: Extract<Decision, { kind: "append" }>) => void;
}

/** How it ended: told to stop, or another coordinator has taken over. */
export type LeaderEnd = "stopped" | "superseded";

/** Longest sleep of a timer of this platform, in milliseconds. */
const maxTimerMs = 2 ** 31 - 1;

export class Leader {
  readonly #options: LeaderOptions;
  readonly #clock: StreamClock;
  readonly #stopping = new AbortController();
  /** What was read since the last append: a later decision reads for itself. */
  readonly #anchors = new Map<number, string | undefined>();
  #state: CoordinatorState;
  #tail: Tail | undefined;
  #appends = 0;
  /** The sequence that the fold has to reach before anything else is done. */
  #awaited = Number.POSITIVE_INFINITY;
  #fault: { readonly error: unknown } | undefined;
  /** Wakes whoever waits for the fold to go on. */
  #wake: () => void = () => {};

  constructor(options: LeaderOptions) {
    this.#options = options;
    this.#clock = new StreamClock(options.clock);
    this.#state = initialState(options.run, options.log.stream);
  }

  get state(): CoordinatorState {
    return this.#state;
  }

  /** Folds the stream to its end and takes over. */
  async start(): Promise<void> {
    const { log } = this.#options;
    this.#tail = await log.tail({ from: 1 }, (message) => this.#fold(message));
    this.#tail.ended.catch((error: unknown) => {
      this.#fault = { error };
      this.#wake();
    });
    do await this.#caughtUp(await log.lastSequence());
    while (!(await this.#takeOver()));
  }

  /**
   * Leads until it is stopped or superseded.
   *
   * @throws HoldpointError whatever the log throws
   */
  async run(): Promise<LeaderEnd> {
    while (!this.#stopping.signal.aborted) {
      if (!isLeader(this.#state, this.#options.incarnation)) return "superseded";
      const decision = this.#decide();
      if (decision.kind === "wait") await this.#changed(decision.untilMs);
      else if (decision.kind === "read") await this.#read(decision.sequence);
      else if ((await this.#append(decision)) === "superseded") return "superseded";
    }
    return "stopped";
  }

  #decide(): Decision {
    const { leaseGraceMs } = this.#options;
    return react({ state: this.#state, nowMs: this.#clock.nowMs(), leaseGraceMs, anchors: this.#anchors });
  }

  /** Ends `run` after the append that is on its way. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#wake();
    await this.#tail?.stop();
  }

  /** Appends that it leads. Only here a refusal may be read again and tried again: it leads nothing yet (L1). */
  async #takeOver(): Promise<boolean> {
    const { run, log, incarnation, promise } = this.#options;
    const subject = controlSubject(run);
    const started: ControlEvent = { type: "coordinator.started", data: { incarnation, promise } };
    const expected = { subject, sequence: this.#state.controlSequence };
    const messageId = `${incarnation}.start`;
    const done = await log.append({ subject, messageId, expected, ...encodeEvents(incarnation, [started]) });
    if (done.stored) await this.#caughtUp(done.sequence);
    return done.stored;
  }

  #fold(message: StoredMessage): void {
    this.#clock.see(message.timeMs);
    this.#state = advance(this.#state, message);
    this.#options.seen?.(message);
    if (this.#state.sequence >= this.#awaited || concernsControl(message)) this.#wake();
  }

  async #append(decision: Extract<Decision, { kind: "append" }>): Promise<"appended" | "refused" | "superseded"> {
    const { log, incarnation, decided } = this.#options;
    const before = this.#state;
    this.#appends += 1;
    const drafts = draftsOf(before, decision.messages, { incarnation, number: this.#appends });
    const [first] = drafts;
    const isOne = drafts.length === 1 && first !== undefined;
    const done = isOne ? await log.append(first) : await log.appendBatch(drafts);
    this.#anchors.clear();
    if (!done.stored) return this.#refused(before);
    await this.#caughtUp(done.sequence);
    decided?.(this.#state, decision);
    return "appended";
  }

  /** Another coordinator has written, or a process that was to be guarded or fenced has: then the fold knows more, and decides anew. */
  async #refused(before: CoordinatorState): Promise<"refused" | "superseded"> {
    const { log, run } = this.#options;
    const last = await log.lastOn(controlSubject(run));
    if ((last?.sequence ?? 0) !== before.controlSequence) return "superseded";
    await this.#caughtUp(await log.lastSequence());
    if (this.#state.sequence > before.sequence) return "refused";
    throw new HoldpointError("unavailable", "an append was refused, and nothing in the stream says why");
  }

  async #read(sequence: number): Promise<void> {
    const { log, hash } = this.#options;
    try {
      this.#anchors.set(sequence, anchorOf(await log.get(sequence), hash));
    } catch (error) {
      if (!HoldpointError.is(error, "not_found")) throw error;
      this.#anchors.set(sequence, undefined);
    }
  }

  async #caughtUp(sequence: number): Promise<void> {
    this.#awaited = sequence;
    while (this.#state.sequence < sequence && !this.#stopping.signal.aborted) await this.#changed();
    this.#awaited = Number.POSITIVE_INFINITY;
  }

  /** Returns when the fold goes on, at stream time `untilMs`, or when it is told to stop. */
  async #changed(untilMs = Number.POSITIVE_INFINITY): Promise<void> {
    const forMs = Math.max(0, untilMs - this.#clock.nowMs());
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      if (Number.isFinite(forMs)) timer = setTimeout(resolve, Math.min(forMs, maxTimerMs));
      if (this.#stopping.signal.aborted || this.#fault !== undefined) resolve();
    });
    clearTimeout(timer);
    this.#wake = () => {};
    if (this.#fault !== undefined) throw this.#fault.error;
  }
}

/** What sessions say needs no decision. */
function concernsControl({ subject, controlPlane }: StoredMessage): boolean {
  const kind = subject.split(".")[2];
  return controlPlane || (kind !== "log" && kind !== "result");
}
