/**
 * Pulling from a consumer that exists: the same for reads, tails and durable consumers.
 *
 * The client's own way (`consume`) costs twice the time for a message and stalls for seconds after a reset; this one asks the
 * consumer itself, with so much on its way that the server never waits for us and memory stays flat: deliveries are handled
 * as they come in, and the next pull is sent when half of the one before has been.
 */
import { deferred, type Deferred, type Msg } from "nats";
import { type Connection, internals } from "./connection.ts";
import { type Delivery, parseDelivery } from "./message.ts";

/** Why a pull ended. `lost`: the consumer or the connection is gone or silent; the next one goes on behind the last delivery. */
export type PullEnd =
  | { readonly type: "stopped" }
  | { readonly type: "lost"; readonly why: string }
  | { readonly type: "failed"; readonly error: unknown };

export interface PullOptions {
  readonly stream: string;
  readonly consumer: string;
  /** The most that is asked for at once; it may shrink as the pull nears its end. Default: always `longestPull`. */
  readonly wanted?: () => number;
  readonly signal?: AbortSignal;
}

/** Takes a delivery; false ends the pull. What it throws ends it too. */
export type Take = (message: Msg, delivery: Delivery) => boolean;

/** Above this a longer pull is not faster. */
const longestPull = 2000;
/** What may be on its way at once, so that the server never counts us as a slow consumer. */
const pullBytes = 8_388_608;
const expiresMs = 30_000;
const heartbeatMs = 750;
/** So many heartbeats without a word: the consumer is gone. */
const patience = 4;
const nanosPerMs = 1e6;

/** Hands each delivery to `take`, in order, until that says stop, `signal` is aborted, or the consumer is lost. Never throws. */
export async function pull(connection: Connection, options: PullOptions, take: Take): Promise<PullEnd> {
  const puller = new Puller(connection, options, take);
  return puller.run();
}

class Puller {
  readonly #connection: Connection;
  readonly #options: PullOptions;
  readonly #take: Take;
  readonly #end: Deferred<PullEnd> = deferred<PullEnd>();
  readonly #inbox: string;
  #outstanding = 0;
  #silentBeats = 0;
  #ended = false;

  constructor(connection: Connection, options: PullOptions, take: Take) {
    this.#connection = connection;
    this.#options = options;
    this.#take = take;
    this.#inbox = connection.newInbox();
  }

  async run(): Promise<PullEnd> {
    const { signal } = this.#options;
    const stop = () => this.#finish({ type: "stopped" });
    const stopListening = this.#connection.onStatus(({ type }) => {
      if (type === "disconnected" || type === "closed") this.#finish({ type: "lost", why: "the connection broke" });
    });
    const watchdog = setInterval(() => this.#beat(), heartbeatMs);
    signal?.addEventListener("abort", stop);
    try {
      const subscription = this.#connection.subscribeRaw(this.#inbox, (message) => this.#receive(message));
      if (signal?.aborted === true) stop();
      else this.#ask();
      return await this.#end.finally(() => subscription.stop());
    } catch (error) {
      return { type: "lost", why: String(error) };
    } finally {
      clearInterval(watchdog);
      stopListening();
      signal?.removeEventListener("abort", stop);
    }
  }

  #finish(end: PullEnd): void {
    this.#ended = true;
    this.#end.resolve(end);
  }

  #ask(): void {
    const wanted = Math.min(this.#options.wanted?.() ?? longestPull, longestPull);
    if (this.#outstanding > wanted / 2) return;
    const batch = wanted - this.#outstanding;
    if (batch < 1) return;
    this.#outstanding += batch;
    const { stream, consumer } = this.#options;
    const request = {
      batch,
      max_bytes: pullBytes,
      expires: expiresMs * nanosPerMs,
      idle_heartbeat: heartbeatMs * nanosPerMs,
    };
    const reply = this.#inbox;
    internals(this.#connection).nats.publish(
      `$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`,
      JSON.stringify(request),
      {
        reply,
      },
    );
  }

  #receive(message: Msg): void {
    if (this.#ended) return;
    this.#silentBeats = 0;
    const delivery = parseDelivery(message.reply);
    try {
      if (delivery === undefined) this.#status(message);
      else this.#deliver(message, delivery);
    } catch (error) {
      this.#finish({ type: "failed", error });
    }
  }

  #deliver(message: Msg, delivery: Delivery): void {
    this.#outstanding--;
    if (this.#take(message, delivery)) this.#ask();
    else this.#finish({ type: "stopped" });
  }

  /** A word of the server about the pull: 100 is a heartbeat; 408 and 409 with what was left of it end one in order. */
  #status({ headers }: Msg): void {
    const code = headers?.code ?? 0;
    if (code === 100) return;
    const left = headers?.get("Nats-Pending-Messages") ?? "";
    if (left === "") {
      this.#finish({ type: "lost", why: `${code} ${headers?.description ?? ""}` });
      return;
    }
    this.#outstanding = Math.max(0, this.#outstanding - Number(left));
    this.#ask();
  }

  /** Beats come late, and once, after long work of our own: then what was received meanwhile has still to be looked at. */
  #beat(): void {
    this.#silentBeats++;
    if (this.#silentBeats > patience) this.#finish({ type: "lost", why: "the consumer is silent" });
  }
}
