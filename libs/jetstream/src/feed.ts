/** A consumer of its own for each read and each life of a tail, behind what was delivered before. */
import type { StoredMessage } from "@holdpoint/eventsourcing";
import { AckPolicy, DeliverPolicy } from "@nats-io/jetstream";
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
  const consumer = `hp_${nuid.next()}`;
  let next = 1;
  let skipped = false;
  try {
    const pending = await createConsumer(connection, consumer, options);
    if (untilExhausted && pending === 0) return { type: "stopped" };
    const pullOptions = { stream, consumer, ...(wanted && { wanted }), ...(signal && { signal }) };
    const end = await pull(connection, pullOptions, (message, delivery) => {
      skipped = delivery.consumerSequence !== next++;
      if (skipped) return false;
      return take(new DeliveredMessage(message, delivery)) && !(untilExhausted && delivery.pending === 0);
    });
    return skipped ? { type: "lost", why: "a delivery was lost" } : end;
  } finally {
    deleteConsumer(connection, stream, consumer);
  }
}

/** @returns how many messages it has to deliver, as of now */
async function createConsumer(
  connection: Connection,
  name: string,
  { stream, from, subjects, signal }: FeedOptions,
): Promise<number> {
  const { manager } = internals(connection);
  const add = () =>
    manager.consumers.add(stream, {
      name,
      ack_policy: AckPolicy.None,
      deliver_policy: DeliverPolicy.StartSequence,
      opt_start_seq: from,
      ...(subjects !== undefined && { filter_subjects: [...subjects] }),
      mem_storage: true,
      num_replicas: 1,
      inactive_threshold: inactiveMs * nanosPerMs,
    });
  const info = await persist(connection, `reading from ${stream}`, add, signal);
  return info.num_pending;
}

/** Also where it may never have been made. Not waited for: the server removes it by itself too. */
function deleteConsumer(connection: Connection, stream: string, consumer: string): void {
  if (!connection.isConnected) return;
  internals(connection)
    .manager.consumers.delete(stream, consumer)
    .catch(() => undefined);
}
