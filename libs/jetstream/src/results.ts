/**
 * The results of a run, for a trainer (L12).
 *
 * 1. Acknowledgements are not as durable as messages: the truth is the cursor that the trainer saves with its weights. On
 *    start the consumer is set to it, and what comes twice all the same is for the trainer to drop.
 * 2. A result that is in hand is not handed out again, however long it takes: what the server sends again only renews it.
 * 3. The server would give up on a message silently; here that is counted, and told.
 */
import { HoldpointError } from "@holdpoint/errors";
import type { StoredMessage } from "@holdpoint/eventsourcing";
import { filters, streamName } from "@holdpoint/schemas";
import { AckPolicy, DeliverPolicy, ReplayPolicy } from "@nats-io/jetstream";
import type { Msg } from "nats";
import { type Connection, internals } from "./connection.ts";
import { type Delivery, DeliveredMessage } from "./message.ts";
import { backOff, persist } from "./persist.ts";
import { pull } from "./pull.ts";
import { damaged, streamState } from "./stream-state.ts";

export interface ConsumeOptions {
  /** The name of the consumer: a token. */
  readonly durable: string;
  /** The first sequence wanted: one above the cursor that is saved with the weights. */
  readonly fromSequence: number;
  /** Results in hand at once. Default: 1,000. */
  readonly maxInHand?: number;
  /** How long one may be in hand before the server thinks it lost, unless `working` is called. Default: 60,000. */
  readonly ackWaitMs?: number;
  /** How often a result may come back by `retry` or a lost process before it is a dead letter. Default: 5. */
  readonly maxDeliver?: number;
  /** Must not throw. */
  readonly deliver: (result: ResultInHand) => void;
  /** Told of a result that came too often; it does not come again. */
  readonly onDeadLetter?: (message: StoredMessage, deliveries: number) => void;
}

/** A result until it is settled, by one of `ack`, `retry` and `terminate`. */
export interface ResultInHand {
  readonly message: StoredMessage;
  /** How often it was handed out since the consumer was set to the cursor, this time included. */
  readonly deliveries: number;
  /** To be called when its effect is durable. Sent, not awaited: see 1. */
  readonly ack: () => void;
  /** It takes longer than usual. */
  readonly working: () => void;
  readonly retry: (delayMs: number) => void;
  readonly terminate: (reason: string) => void;
}

export interface ResultConsumer {
  stop(): Promise<void>;
  /** Fulfilled after `stop`; rejected where the consumer cannot go on, such as on a closed connection. */
  readonly ended: Promise<void>;
}

const nanosPerMs = 1e6;
const consumerExists = new Set([10013, 10105, 10148]);

/**
 * Hands the results of `run` to `deliver`, from `fromSequence` on, each until it is settled.
 *
 * @throws HoldpointError `invalid_checkpoint_state` where the stream ends before `fromSequence`: it is not the one that the
 *   cursor is about; `not_found` where there is no stream
 */
export async function consumeResults(
  connection: Connection,
  run: string,
  options: ConsumeOptions,
): Promise<ResultConsumer> {
  const stream = streamName(run);
  const { fromSequence } = options;
  const { last } = await streamState(connection, stream);
  if (fromSequence > last + 1) throw damaged(stream, `ends at ${last}, before ${fromSequence}`, { last, fromSequence });
  await ensureConsumer(connection, run, options);
  const { manager } = internals(connection);
  const reset = () => manager.consumers.reset(stream, options.durable, fromSequence);
  await persist(connection, `setting ${options.durable} to ${fromSequence}`, reset);
  return new RunningConsumer(connection, run, options);
}

async function ensureConsumer(
  connection: Connection,
  run: string,
  { durable, maxInHand = 1000, ackWaitMs = 60_000 }: ConsumeOptions,
  signal?: AbortSignal,
): Promise<void> {
  const { manager } = internals(connection);
  const stream = streamName(run);
  const config = {
    name: durable,
    durable_name: durable,
    filter_subject: filters.results(run),
    ack_policy: AckPolicy.Explicit,
    deliver_policy: DeliverPolicy.All, // where it begins is set by the reset
    replay_policy: ReplayPolicy.Instant,
    ack_wait: ackWaitMs * nanosPerMs,
    max_ack_pending: maxInHand,
    max_deliver: -1,
  };
  const doing = `making the consumer ${durable}`;
  try {
    await persist(connection, doing, () => manager.consumers.add(stream, config), signal);
  } catch (error) {
    const apiCode = HoldpointError.is(error) ? Number(error.details["apiCode"]) : 0;
    if (!consumerExists.has(apiCode)) throw error;
    await persist(connection, doing, () => manager.consumers.update(stream, durable, config), signal);
  }
}

class RunningConsumer implements ResultConsumer {
  readonly ended: Promise<void>;
  readonly #connection: Connection;
  readonly #run: string;
  readonly #options: ConsumeOptions;
  readonly #stopping = new AbortController();
  /** By sequence, the subject on which the latest delivery of what is in hand is settled. */
  readonly #inHand = new Map<number, string>();

  constructor(connection: Connection, run: string, options: ConsumeOptions) {
    this.#connection = connection;
    this.#run = run;
    this.#options = options;
    this.ended = this.#consume();
    this.ended.catch(() => undefined); // also where nobody asks
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.ended.catch(() => undefined);
  }

  async #consume(): Promise<void> {
    const { signal } = this.#stopping;
    const source = { stream: streamName(this.#run), consumer: this.#options.durable, signal };
    let fruitless = 0;
    while (!signal.aborted) {
      const end = await pull(this.#connection, source, (message, delivery) => {
        fruitless = 0;
        return this.#take(message, delivery);
      });
      if (end.type === "failed") throw end.error;
      if (end.type === "lost") await this.#again(fruitless++);
    }
  }

  async #again(fruitless: number): Promise<void> {
    const { signal } = this.#stopping;
    try {
      await backOff(this.#connection, fruitless, `consuming the results of ${this.#run}`, signal);
      await ensureConsumer(this.#connection, this.#run, this.#options, signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  #take(raw: Msg, delivery: Delivery): boolean {
    const { maxDeliver = 5, fromSequence, deliver, onDeadLetter } = this.#options;
    const { streamSequence: sequence, count } = delivery;
    const isInHand = this.#inHand.has(sequence);
    this.#inHand.set(sequence, raw.reply ?? "");
    if (isInHand) return true;
    const message = new DeliveredMessage(raw, delivery);
    if (sequence < fromSequence) this.#settle(sequence, "+ACK");
    else if (count <= maxDeliver) deliver(this.#result(message, count));
    else {
      this.#settle(sequence, "+TERM came too often");
      onDeadLetter?.(message, count);
    }
    return true;
  }

  #result(message: StoredMessage, deliveries: number): ResultInHand {
    const { sequence } = message;
    return {
      message,
      deliveries,
      ack: () => this.#settle(sequence, "+ACK"),
      working: () => this.#tell(sequence, "+WPI"),
      retry: (delayMs) => this.#settle(sequence, `-NAK ${JSON.stringify({ delay: delayMs * nanosPerMs })}`),
      terminate: (reason) => this.#settle(sequence, `+TERM ${reason}`),
    };
  }

  #settle(sequence: number, word: string): void {
    this.#tell(sequence, word);
    this.#inHand.delete(sequence);
  }

  /** Lost while the connection is down: then the server sends the message again, and it is settled again. */
  #tell(sequence: number, word: string): void {
    const subject = this.#inHand.get(sequence);
    if (subject !== undefined && !this.#connection.isClosed) internals(this.#connection).nats.publish(subject, word);
  }
}
