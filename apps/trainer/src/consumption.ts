/**
 * The trainer's durable consumer: each result is acknowledged on it once its effect is saved, so that operators, and whoever
 * trims the stream, see how far the trainer is.
 *
 * What a trainer trains on it does not take from here. A delivery that is lost with a connection comes again only after later
 * ones, and a zombie that still pulls gets deliveries that its successor then never sees; the log is read in order, without a
 * gap, by each life for itself (`RunView`).
 */
import { type Connection, consumeResults, type ResultInHand } from "@holdpoint/jetstream";

/** A lost delivery comes again after this. */
const ackWaitMs = 5000;

export interface ConsumptionOptions {
  readonly connection: Connection;
  readonly run: string;
  /** Of the trainer: names the consumer. */
  readonly instance: string;
  /** Results up to here are taken care of: where the consumer is set to. */
  readonly cursor: number;
  /** Told why nothing can be consumed any more. */
  readonly failed: (error: unknown) => void;
}

export class Consumption {
  #inHand: ResultInHand[] = [];
  #settled: number;

  private constructor(cursor: number) {
    this.#settled = cursor;
  }

  static async open({ connection, run, instance, cursor, failed }: ConsumptionOptions): Promise<Consumption> {
    const consumption = new Consumption(cursor);
    const consumer = await consumeResults(connection, run, {
      durable: `trainer-${instance}`,
      fromSequence: cursor + 1,
      ackWaitMs,
      maxDeliver: Number.MAX_SAFE_INTEGER, // none is given up: it is in the log
      deliver: (result) => consumption.#take(result),
    });
    consumer.ended.catch(failed);
    return consumption;
  }

  /** The effect of everything up to `cursor` is saved. */
  settle(cursor: number): void {
    this.#settled = cursor;
    for (const result of this.#inHand) if (result.message.sequence <= cursor) result.ack();
    this.#inHand = this.#inHand.filter(({ message }) => message.sequence > cursor);
  }

  #take(result: ResultInHand): void {
    if (result.message.sequence <= this.#settled) result.ack();
    else this.#inHand.push(result);
  }
}
