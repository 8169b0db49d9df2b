/** Watches the log of a run as the operator may, while it runs and when it is over. */
import type { Broker } from "@holdpoint/broker";
import type { EventLog, Tail } from "@holdpoint/eventsourcing";
import { type Connection, connectTo, openBlobs, openLog } from "@holdpoint/jetstream";
import { Contents, sha256 } from "@holdpoint/participant";
import { setTimeout as pause } from "node:timers/promises";
import type { Traces } from "./collect.ts";
import { HistoryReader } from "./history.ts";
import { ProgressFold } from "./progress.ts";

const pollMs = 50;
const patienceMs = 30_000;

export class Observer {
  readonly progress = new ProgressFold();
  readonly problems: string[] = [];
  readonly #run: string;
  readonly #connection: Connection;
  readonly #log: EventLog;
  #tail: Tail | undefined;

  private constructor(run: string, connection: Connection) {
    this.#run = run;
    this.#connection = connection;
    this.#log = openLog(connection, run);
  }

  /**
   * Follows the log from its beginning, over restarts of the broker; waits for the stream until the signal.
   *
   * @throws HoldpointError `not_found` where there is still none
   */
  static async open(broker: Broker, run: string, signal: AbortSignal): Promise<Observer> {
    const credentials = broker.credentialsOf("operator");
    const { user, password } = credentials ?? {};
    const connection = await connectTo({
      url: broker.url,
      name: "holdpoint",
      ...(user !== undefined && { user }),
      ...(password !== undefined && { password }),
    });
    const observer = new Observer(run, connection);
    try {
      await observer.#follow(AbortSignal.any([signal, AbortSignal.timeout(patienceMs)]));
      return observer;
    } catch (error) {
      await observer.close();
      throw error;
    }
  }

  /** All of the log as it is now, and what reads the texts that it names. */
  async read(): Promise<Pick<Traces, "history" | "read">> {
    const reader = new HistoryReader();
    await this.#log.read({ upTo: await this.#log.lastSequence() }, (message) => reader.take(message));
    const contents = new Contents(openBlobs(this.#connection, this.#run, sha256));
    return { history: reader.history(), read: (content) => contents.read(content) };
  }

  async close(): Promise<void> {
    await this.#tail?.stop();
    await this.#connection.close();
  }

  async #follow(patience: AbortSignal): Promise<void> {
    await this.#untilThere(patience);
    this.#tail = await this.#log.tail({ from: 1 }, (message) => this.progress.take(message));
    this.#tail.ended.catch((error: unknown) => {
      this.problems.push(`the log could not be followed: ${error instanceof Error ? error.message : String(error)}`);
    });
  }

  async #untilThere(patience: AbortSignal): Promise<void> {
    for (;;) {
      try {
        await this.#log.lastSequence();
        return;
      } catch (error) {
        if (patience.aborted) throw error;
        await pause(pollMs);
      }
    }
  }
}
