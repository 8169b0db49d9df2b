/** A consumer of its own for each read and each life of a tail, behind what was delivered before. */
import type { StoredMessage } from "@holdpoint/eventsourcing";
import { AckPolicy, type ConsumerInfo, DeliverPolicy } from "@nats-io/jetstream";
import { nuid } from "nats";
import { type Connection, internals } from "./connection.ts";
import { DeliveredMessage } from "./message.ts";
import { persist } from "./persist.ts";
import { pull, type PullEnd } from "./pull.ts";

export interface FeedOptions {
  readonly stream: string;
  readonly from: number;
  readonly subjects: readonly string[] | undefined;
  /** End when the server has nothing more for now. */
  readonly untilExhausted: boolean;
  /** How many more messages are wanted at most; see `PullOptions`. */
  readonly wanted?: () => number;
  readonly signal?: AbortSignal;
}

/** How long the server keeps a consumer that we could not delete. */
const inactiveMs = 30_000;
const nanosPerMs = 1e6;

/** Hands messages to `take`, in order and without a gap, until that says false or the feed is lost; see `pull`. */
export async function feed(
  connection: Connection,
  options: FeedOptions,
  take: (message: StoredMessage) => boolean,
): Promise<PullEnd> {
  const { stream, untilExhausted, wanted, signal } = options;
  const consumer = new FeedConsumer(connection, options);
  let next = 1;
  let skipped = false;
  try {
    const pending = await consumer.create();
    if (untilExhausted && pending === 0) return { type: "stopped" };
    const pullOptions = { stream, consumer: consumer.name, ...(wanted && { wanted }), ...(signal && { signal }) };
    const end = await pull(connection, pullOptions, (message, delivery) => {
      skipped = delivery.consumerSequence !== next++;
      if (skipped) return false;
      return take(new DeliveredMessage(message, delivery)) && !(untilExhausted && delivery.pending === 0);
    });
    return skipped ? { type: "lost", why: "a delivery was lost" } : end;
  } finally {
    void consumer.delete();
  }
}

class FeedConsumer {
  readonly name = `hp_${nuid.next()}`;
  readonly #connection: Connection;
  readonly #options: FeedOptions;
  /** Settles when the server has answered the latest creation, also where nobody waits for that any more. */
  #creating: Promise<unknown> = Promise.resolve();

  constructor(connection: Connection, options: FeedOptions) {
    this.#connection = connection;
    this.#options = options;
  }

  /** @returns how many messages it has to deliver, as of now */
  async create(): Promise<number> {
    const { stream, signal } = this.#options;
    const add = () => {
      const adding = this.#add();
      this.#creating = adding;
      return adding;
    };
    return (await persist(this.#connection, `reading from ${stream}`, add, signal)).num_pending;
  }

  /** Not to be waited for: the server removes it by itself too. */
  async delete(): Promise<void> {
    const { manager } = internals(this.#connection);
    try {
      await this.#creating;
      if (this.#connection.isConnected) await manager.consumers.delete(this.#options.stream, this.name);
    } catch {
      // It was never made, is gone already, or will be.
    }
  }

  #add(): Promise<ConsumerInfo> {
    const { stream, from, subjects } = this.#options;
    return internals(this.#connection).manager.consumers.add(stream, {
      name: this.name,
      ack_policy: AckPolicy.None,
      deliver_policy: DeliverPolicy.StartSequence,
      opt_start_seq: from,
      ...(subjects !== undefined && { filter_subjects: [...subjects] }),
      mem_storage: true,
      num_replicas: 1,
      inactive_threshold: inactiveMs * nanosPerMs,
    });
  }
}
