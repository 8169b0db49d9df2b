/**
 * One connection to the broker, as the rest of Holdpoint sees it.
 *
 * 1. It never gives up: while the broker is away everything waits. It ends by `close`, or where the broker refuses the user.
 * 2. The client drops what is published while it is disconnected, and lets requests run into their timeout. Here requests
 *    wait for the connection, and fail at once when it breaks.
 * 3. A callback that throws would end the client's reader for good. Here it becomes a status.
 */
import { HoldpointError } from "@holdpoint/errors";
import type { AbortSignalLike } from "@holdpoint/eventsourcing";
import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import { createInbox, deferred, type Msg, type NatsConnection, type Payload } from "nats";
import { translate } from "./failure.ts";
import { exactSubject, isInbox } from "./subject.ts";

/** What became of the connection, or of something on it that nobody awaits. */
export type ConnectionStatus =
  | { readonly type: "connected" | "disconnected" | "closed" }
  /** The broker refused a subscription or a message, or a handler failed. */
  | { readonly type: "fault"; readonly error: Error };

/** A message as a subscriber receives it. */
export interface Incoming {
  readonly subject: string;
  readonly data: Uint8Array;
  /** Answers a request; nothing happens where none was asked for. Lost while the connection is down: the asker asks again. */
  readonly respond: (body: Payload) => void;
}

export interface Subscription {
  /** Takes no further messages. */
  stop(): void;
}

export interface RequestOptions {
  /** How long to wait for the answer, and before it for the connection. Default: 5,000. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignalLike;
}

interface Parts {
  readonly nats: NatsConnection;
  readonly manager: JetStreamManager;
  readonly inboxPrefix: string;
}

let partsOf: (connection: Connection) => Parts;
/** What the modules of this package need of a connection, and nobody else. */
export const internals = (connection: Connection): Parts => partsOf(connection);

export class Connection {
  readonly #parts: Parts;
  readonly #listeners = new Set<(status: ConnectionStatus) => void>();
  #connected = true;

  static {
    partsOf = (connection) => connection.#parts;
  }

  private constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Takes over `nats`, which is connected. */
  static async over(nats: NatsConnection, inboxPrefix: string): Promise<Connection> {
    const manager = await jetstreamManager(nats, { checkAPI: false });
    const connection = new Connection({ nats, manager, inboxPrefix });
    void connection.#watch();
    return connection;
  }

  get isClosed(): boolean {
    return this.#parts.nats.isClosed();
  }

  /** Whether the broker can be reached now, as far as is known. */
  get isConnected(): boolean {
    return this.#connected && !this.isClosed;
  }

  /** The version of the server at the other end; empty while there is none. */
  get serverVersion(): string {
    return this.#parts.nats.info?.version ?? "";
  }

  /** Calls `listener` at every change; the returned function ends that. It must not throw. */
  onStatus(listener: (status: ConnectionStatus) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * Publishes without an acknowledgement: lost where nobody listens, or while the connection is down.
   *
   * @throws HoldpointError `invalid_request` where `subject` is not exact, `unavailable` where the connection is closed
   */
  publish(subject: string, body: Payload): void {
    exactSubject(subject);
    try {
      this.#parts.nats.publish(subject, body);
    } catch (error) {
      throw translate(error, `publishing to ${subject}`);
    }
  }

  /**
   * Asks, and returns the body of the first answer.
   *
   * @throws HoldpointError `unavailable` where nobody listens, no answer came in time, or the connection broke: not known
   *   whether it was heard; `unauthorized` where the user may not ask
   */
  async request(subject: string, body: Payload, options: RequestOptions = {}): Promise<Uint8Array> {
    const { timeoutMs = 5000, signal } = options;
    exactSubject(subject);
    const patience = AbortSignal.timeout(timeoutMs);
    const doing = `a request to ${subject}`;
    await this.whenConnected(doing, patience, signal);
    const asked = await this.whileConnected(
      doing,
      () => this.#parts.nats.request(subject, body, { timeout: timeoutMs }),
      signal,
    );
    return asked.data;
  }

  /**
   * Hands each message on `subject`, which may have wildcards, to `handler`, until it is stopped; over reconnects.
   *
   * @param options.queue subscribers of one queue name share the messages
   * @returns once the broker knows of it
   */
  async subscribe(
    subject: string,
    handler: (message: Incoming) => void | Promise<void>,
    { queue }: { readonly queue?: string } = {},
  ): Promise<Subscription> {
    const guarded = async (message: Msg) => {
      try {
        const respond = (body: Payload) => void (isInbox(message.reply) && message.respond(body));
        await handler({ subject: message.subject, data: message.data, respond });
      } catch (error) {
        this.fault(error);
      }
    };
    const subscription = this.subscribeRaw(subject, (message) => void guarded(message), queue);
    await this.#parts.nats.flush().catch(() => undefined); // broken meanwhile: the client subscribes again by itself
    return subscription;
  }

  /** As `subscribe`, for this package: `handler` must not throw. */
  subscribeRaw(subject: string, handler: (message: Msg) => void, queue?: string): Subscription {
    const callback = (error: Error | null, message: Msg) => {
      if (error === null) handler(message);
      else this.fault(translate(error, `subscribing to ${subject}`));
    };
    try {
      const subscription = this.#parts.nats.subscribe(
        subject,
        queue === undefined ? { callback } : { callback, queue },
      );
      return { stop: () => void (this.isClosed || subscription.unsubscribe()) };
    } catch (error) {
      throw translate(error, `subscribing to ${subject}`);
    }
  }

  /**
   * Asks the broker for a sign of life, which comes after all that it had for this connection: that has been handed on by then.
   *
   * @throws HoldpointError `unavailable` where the connection is down, or breaks meanwhile
   */
  async roundTrip(): Promise<void> {
    await this.whileConnected("a sign of life of the broker", () => this.#parts.nats.flush());
  }

  /** Tells the listeners of what failed where nobody awaits it. */
  fault(error: unknown): void {
    this.#tell({ type: "fault", error: error instanceof Error ? error : new Error(String(error)) });
  }

  /** A fresh subject that only this user can listen to. */
  newInbox(): string {
    return createInbox(this.#parts.inboxPrefix);
  }

  /** Ends at once. Whatever waits on it fails with `unavailable`. */
  async close(): Promise<void> {
    await this.#parts.nats.close();
  }

  /** Takes no further messages, handles those that are here, sends what is on its way, and ends. */
  async drain(): Promise<void> {
    if (this.isConnected) await this.#parts.nats.drain().catch(() => undefined);
    await this.close();
  }

  /** @throws HoldpointError `unavailable` where the connection is closed, or a signal was aborted before there was one */
  async whenConnected(doing: string, ...signals: readonly (AbortSignalLike | undefined)[]): Promise<void> {
    if (this.isConnected && !signals.some((signal) => signal?.aborted === true)) return;
    const connected = deferred<void>();
    const release = this.#onEnd(signals, (why) => connected.reject(broken(doing, why)), connected.resolve);
    if (this.isConnected) connected.resolve();
    try {
      await connected;
    } finally {
      release();
    }
  }

  /**
   * What `ask` answers.
   *
   * @throws HoldpointError `unavailable` as soon as the connection breaks or `signal` is aborted: not known whether it was
   *   heard; else as `translate` says
   */
  async whileConnected<T>(doing: string, ask: () => Promise<T>, signal?: AbortSignalLike): Promise<T> {
    if (!this.isConnected) throw broken(doing, "the connection is down");
    const end = deferred<never>();
    const release = this.#onEnd([signal], (why) => end.reject(broken(doing, why)));
    try {
      return await Promise.race([ask(), end]);
    } catch (error) {
      throw translate(error, doing);
    } finally {
      release();
    }
  }

  /** Calls `end` with the reason when the connection breaks or is closed, or a signal is aborted; `connected` when it is there. */
  #onEnd(
    signals: readonly (AbortSignalLike | undefined)[],
    end: (why: string) => void,
    connected?: () => void,
  ): () => void {
    const ends = { closed: "the connection is closed", disconnected: "the connection broke" };
    const stopListening = this.onStatus(({ type }) => {
      if (type === "closed" || type === "disconnected") end(ends[type]);
      else if (type === "connected") connected?.();
    });
    const onAbort = () => end("given up by the caller, or out of time");
    for (const signal of signals) signal?.addEventListener("abort", onAbort);
    if (signals.some((signal) => signal?.aborted === true)) onAbort();
    if (this.isClosed) end(ends.closed);
    return () => {
      stopListening();
      for (const signal of signals) signal?.removeEventListener("abort", onAbort);
    };
  }

  async #watch(): Promise<void> {
    for await (const status of this.#parts.nats.status()) {
      if (status.type === "disconnect") this.#change(false);
      else if (status.type === "reconnect") this.#change(true);
      else if (status.type === "error") this.fault(translate(status.error, "what was sent"));
    }
    this.#connected = false;
    this.#tell({ type: "closed" });
  }

  #change(connected: boolean): void {
    if (this.#connected === connected) return;
    this.#connected = connected;
    this.#tell({ type: connected ? "connected" : "disconnected" });
  }

  #tell(status: ConnectionStatus): void {
    for (const listener of this.#listeners) listener(status);
  }
}

function broken(doing: string, why: string): HoldpointError {
  return new HoldpointError("unavailable", `${doing}: ${why}`);
}
