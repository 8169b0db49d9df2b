/**
 * The one writer of a process' log subject.
 *
 * 1. One append is in flight at a time; what comes meanwhile is gathered into the next message (L1).
 * 2. Each append expects the subject to end where this writer left it. A refusal means that a successor has taken over: the
 *    writer is fenced for good, and everything asked of it fails. So it is where an append fails: whether it is stored is not
 *    known, and what comes after it may not be.
 * 3. What was asked resolves after the acknowledgement, and after `applied` saw the events, in stream order (L2).
 * 4. While it is frozen only what is marked `urgent` is appended (L4).
 */
import { HoldpointError } from "@holdpoint/errors";
import {
  concernsControlPlane,
  type Draft,
  envelopeOf,
  type EventLog,
  type NewEvent,
  type Recorded,
} from "@holdpoint/eventsourcing";
import { logSubject, resultSubject, type Writer } from "@holdpoint/schemas";

/** UTF-16 units up to which appends are gathered into a message: at three bytes each it stays below the broker's limit. */
const maxMessageUnits = 256 * 1024;
const maxEventsPerMessage = 2_000;
/** Bytes of UTF-8 of what is asked at once. The broker takes 1 MiB, with headers. */
const maxAppendBytes = 1_000_000;

/** Events as JSON, with commas between. */
interface WrittenOut {
  readonly text: string;
  readonly controlPlane: boolean;
}

interface Pending<E> extends WrittenOut {
  readonly events: readonly E[];
  readonly subject: string;
  /** Goes also while the writer is frozen. */
  urgent: boolean;
  resolve(sequence: number): void;
  reject(error: unknown): void;
}

export interface LogWriterOptions<E> {
  readonly log: EventLog;
  readonly run: string;
  readonly writer: Writer;
  /** Unique for each life of the process. */
  readonly incarnation: string;
  /** Milliseconds since the epoch, as close to the stream's clock as is known. */
  readonly now: () => number;
  /** The events of one message, once it is acknowledged. */
  readonly applied: (events: readonly Recorded<E>[]) => void;
  /** Called once, when a successor has taken over. */
  readonly fenced: () => void;
  /** Called once, when an append has failed: nothing more is appended by this writer, and only a successor can go on. */
  readonly failed?: (error: unknown) => void;
}

export class LogWriter<E extends NewEvent> {
  readonly #options: LogWriterOptions<E>;
  readonly #logSubject: string;
  readonly #resultSubject: string;
  #waiting: Pending<E>[] = [];
  #inFlight: Promise<void> | undefined;
  #frozen = false;
  #sequence = 0;
  #appended = 0;
  #isPumping = false;
  /** Why nothing more is appended. */
  #over: HoldpointError | undefined;

  private constructor(options: LogWriterOptions<E>) {
    this.#options = options;
    this.#logSubject = logSubject(options.run, options.writer);
    this.#resultSubject = resultSubject(options.run, options.writer);
  }

  /**
   * Takes the subject over: appends `announcement` after whatever is there, which fences the writer before this one.
   *
   * @returns the writer, and the sequence of the announcement
   */
  static async claim<E extends NewEvent>(
    options: LogWriterOptions<E>,
    announce: (last: { readonly sequence: number; readonly timeMs: number } | undefined) => E,
  ): Promise<{ readonly writer: LogWriter<E>; readonly sequence: number }> {
    const writer = new LogWriter(options);
    for (;;) {
      const last = await options.log.lastOn(writer.#logSubject);
      writer.#sequence = last?.sequence ?? 0;
      const draft = writer.#draft(writer.#logSubject, [writtenOut([announce(last)])]);
      const result = await options.log.append(draft);
      if (!result.stored) continue; // a rival starts at the same time: the later announcement wins
      writer.#sequence = result.sequence;
      return { writer, sequence: result.sequence };
    }
  }

  /** Where the log subject ends, as far as this writer knows. */
  get sequence(): number {
    return this.#sequence;
  }

  /**
   * Appends `events` in one message.
   *
   * @returns the sequence of the message
   * @throws HoldpointError `stale_attempt` where a successor of this process has taken over; `invalid_request` where they are
   *   too large for a message; `unavailable` where an append before has failed
   */
  record(events: readonly E[], { urgent = false } = {}): Promise<number> {
    return this.#enqueue(this.#logSubject, events, urgent);
  }

  /** Appends to the result subject: an event that ends an episode. */
  end(event: E): Promise<number> {
    return this.#enqueue(this.#resultSubject, [event], false);
  }

  /** Returns once everything asked so far is appended; of what comes from now on only urgent events are, until `thaw`. */
  async freeze(): Promise<void> {
    if (!this.#frozen) for (const pending of this.#waiting) pending.urgent = true;
    this.#frozen = true;
    while (this.#inFlight !== undefined || this.#waiting.some(({ urgent }) => urgent)) await this.settled();
  }

  thaw(): void {
    this.#frozen = false;
    this.#pump();
  }

  /** Returns when no append is in flight; what waits behind it may have started by then. */
  async settled(): Promise<void> {
    await this.#inFlight;
  }

  #enqueue(subject: string, events: readonly E[], urgent: boolean): Promise<number> {
    if (this.#over !== undefined) return Promise.reject(this.#over);
    if (events.length === 0) return Promise.resolve(this.#sequence);
    const written = writtenOut(events);
    const tooLarge = refusalOf(written.text);
    if (tooLarge !== undefined) return Promise.reject(tooLarge);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ ...written, events, subject, urgent, resolve, reject });
      this.#pump();
    });
  }

  /** Starts an append after this turn, so that what is asked in one turn is gathered. */
  #pump(): void {
    if (this.#isPumping || this.#inFlight !== undefined || this.#over !== undefined) return;
    this.#isPumping = true;
    queueMicrotask(() => {
      this.#isPumping = false;
      const batch = this.#take();
      if (batch.length > 0) this.#inFlight = this.#store(batch);
    });
  }

  async #store(batch: readonly Pending<E>[]): Promise<void> {
    await this.#append(batch);
    this.#inFlight = undefined;
    this.#pump();
  }

  /** The longest run of waiting appends for one subject that fits a message. */
  #take(): Pending<E>[] {
    const ready = this.#frozen ? this.#waiting.filter(({ urgent }) => urgent) : this.#waiting;
    const subject = ready[0]?.subject;
    let units = 0;
    let events = 0;
    const taken = new Set<Pending<E>>();
    for (const pending of ready) {
      units += pending.text.length;
      events += pending.events.length;
      const full = taken.size > 0 && (units > maxMessageUnits || events > maxEventsPerMessage);
      if (pending.subject !== subject || full) break;
      taken.add(pending);
    }
    this.#waiting = taken.size === this.#waiting.length ? [] : this.#waiting.filter((pending) => !taken.has(pending));
    return [...taken];
  }

  async #append(batch: readonly Pending<E>[]): Promise<void> {
    const subject = batch[0]?.subject ?? this.#logSubject;
    const events = batch.flatMap((pending) => pending.events);
    try {
      const result = await this.#options.log.append(this.#draft(subject, batch));
      if (!result.stored) return this.#fence(batch);
      if (subject === this.#logSubject) this.#sequence = result.sequence;
      this.#apply(events, subject, result.sequence);
      for (const pending of batch) pending.resolve(result.sequence);
    } catch (error) {
      this.#end(batch, this.#failure(error));
      this.#options.failed?.(error);
    }
  }

  #apply(events: readonly E[], subject: string, sequence: number): void {
    const timeMs = this.#options.now();
    const { incarnation, applied } = this.#options;
    applied(events.map((event, index) => ({ event, sequence, index, subject, timeMs, incarnation })));
  }

  #draft(subject: string, batch: readonly WrittenOut[]): Draft {
    const { incarnation } = this.#options;
    this.#appended += 1;
    const texts = batch.map(({ text }) => text);
    return {
      body: envelopeOf(incarnation, texts),
      controlPlane: batch.some(({ controlPlane }) => controlPlane),
      subject,
      messageId: `${incarnation}-${this.#appended}`,
      expected: { subject: this.#logSubject, sequence: this.#sequence },
    };
  }

  #fence(batch: readonly Pending<E>[]): void {
    const words = `another process has taken over ${this.#logSubject}; this one stops`;
    this.#end(batch, new HoldpointError("stale_attempt", words, { details: this.#details() }));
    this.#options.fenced();
  }

  /** Everything asked so far, and from now on, fails with `why`. */
  #end(batch: readonly Pending<E>[], why: HoldpointError): void {
    this.#over = why;
    const failed = [...batch, ...this.#waiting];
    this.#waiting = [];
    for (const pending of failed) pending.reject(why);
  }

  #failure(cause: unknown): HoldpointError {
    const words = `an append to ${this.#logSubject} failed, and nothing is appended after it: start the process again`;
    const why = cause instanceof Error ? cause.message : String(cause);
    return new HoldpointError("unavailable", `${words} (${why})`, { cause, details: this.#details() });
  }

  #details() {
    return { subject: this.#logSubject, incarnation: this.#options.incarnation };
  }
}

function writtenOut(events: readonly NewEvent[]): WrittenOut {
  const text = events.map((event) => JSON.stringify(event)).join(",");
  return { text, controlPlane: events.some((event) => concernsControlPlane(event)) };
}

/** What is wrong with a text that does not fit a message. */
function refusalOf(text: string): HoldpointError | undefined {
  const bytes = text.length > maxMessageUnits ? Buffer.byteLength(text) : 0;
  if (bytes <= maxAppendBytes) return undefined;
  const words = `events of ${bytes} bytes do not fit a message of ${maxAppendBytes}`;
  return new HoldpointError("invalid_request", `${words}: put large texts into blobs (Contents.write)`, {
    details: { bytes, limit: maxAppendBytes },
  });
}
