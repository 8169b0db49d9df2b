/** A way to a log on which appends can be kept waiting, or fail. */
import type {
  AppendResult,
  Draft,
  EventLog,
  ReadOptions,
  StoredMessage,
  Tail,
  TailOptions,
} from "@holdpoint/eventsourcing";
import { Latch } from "@holdpoint/participant";

export class GatedLog implements EventLog {
  readonly #log: EventLog;
  readonly #latch = new Latch();
  /** What was asked for, also if it is kept waiting. */
  readonly drafts: Draft[] = [];
  /** How many appends are under way, now and at most. */
  underWay = 0;
  mostUnderWay = 0;
  isShut = false;
  /** What the next append fails with, and whether it is stored all the same. */
  failure: { readonly error: Error; readonly stored: boolean } | undefined;

  constructor(log: EventLog) {
    this.#log = log;
  }

  get stream(): string {
    return this.#log.stream;
  }

  open(): void {
    this.isShut = false;
    this.#latch.changed();
  }

  async append(draft: Draft): Promise<AppendResult> {
    this.drafts.push(draft);
    this.underWay += 1;
    this.mostUnderWay = Math.max(this.mostUnderWay, this.underWay);
    await this.#latch.until(() => !this.isShut);
    this.underWay -= 1;
    const { failure } = this;
    this.failure = undefined;
    if (failure === undefined) return this.#log.append(draft);
    if (failure.stored) await this.#log.append(draft);
    throw failure.error;
  }

  appendBatch(drafts: readonly Draft[]): Promise<AppendResult> {
    return this.#log.appendBatch(drafts);
  }

  lastOn(subject: string): Promise<StoredMessage | undefined> {
    return this.#log.lastOn(subject);
  }

  get(sequence: number): Promise<StoredMessage> {
    return this.#log.get(sequence);
  }

  lastSequence(): Promise<number> {
    return this.#log.lastSequence();
  }

  read(options: ReadOptions, deliver: (message: StoredMessage) => void): Promise<void> {
    return this.#log.read(options, deliver);
  }

  tail(options: TailOptions, deliver: (message: StoredMessage) => void): Promise<Tail> {
    return this.#log.tail(options, deliver);
  }
}
