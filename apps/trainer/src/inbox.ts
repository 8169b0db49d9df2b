/**
 * The results of the run, as they come, until they are taken care of.
 *
 * The durable consumer says that there is something, and is told when its effect is saved; operators see by it how far the
 * trainer is. What there is is read from the log, from the cursor on and without a gap: a delivery that is lost with a
 * connection comes again only after later ones, and would be passed over by a cursor that follows deliveries.
 */
import type { EventLog } from "@holdpoint/eventsourcing";
import { type Connection, consumeResults, type ResultInHand } from "@holdpoint/jetstream";
import { filters } from "@holdpoint/schemas";
import type { RunView } from "./run-view.ts";
import type { ResultMessage } from "./state.ts";

/** A lost delivery comes again after this. */
const ackWaitMs = 5000;

export interface InboxOptions {
  readonly connection: Connection;
  readonly log: EventLog;
  readonly run: string;
  /** Of the trainer: names the consumer. */
  readonly instance: string;
  readonly view: RunView;
  /** The sequence up to which `view` has the results. */
  readonly readUpTo: number;
}

export class Inbox {
  readonly #options: InboxOptions;
  #inHand: ResultInHand[] = [];
  #readUpTo: number;

  private constructor(options: InboxOptions) {
    this.#options = options;
    this.#readUpTo = options.readUpTo;
  }

  /** Sets the consumer to `cursor` and follows it. */
  static async open(options: InboxOptions, cursor: number): Promise<Inbox> {
    const { connection, run, instance, view } = options;
    const inbox = new Inbox(options);
    const consumer = await consumeResults(connection, run, {
      durable: `trainer-${instance}`,
      fromSequence: cursor + 1,
      ackWaitMs,
      maxDeliver: Number.MAX_SAFE_INTEGER, // none is given up: it is in the log
      deliver: (result) => {
        inbox.#inHand.push(result);
        view.changed();
      },
    });
    consumer.ended.catch((error: unknown) => view.fail(error));
    return inbox;
  }

  /** Messages with results after `cursor` that are known of, in stream order; `everything`: all that the stream has by now. */
  async resultsAfter(cursor: number, everything = false): Promise<readonly ResultMessage[]> {
    const { log, run, view } = this.#options;
    const told = Math.max(...this.#inHand.map(({ message }) => message.sequence), 0);
    const upTo = everything ? await log.lastSequence() : told;
    const from = this.#readUpTo + 1;
    if (upTo >= from) {
      await log.read({ from, upTo, subjects: [filters.results(run)] }, (message) => view.take(message));
      this.#readUpTo = upTo;
    }
    return view.resultsAfter(cursor);
  }

  /** The effect of everything up to `cursor` is saved. */
  settle(cursor: number): void {
    for (const result of this.#inHand) if (result.message.sequence <= cursor) result.ack();
    this.#inHand = this.#inHand.filter(({ message }) => message.sequence > cursor);
  }
}
