/**
 * Sends rollouts to the environment, each attempt until it was taken.
 *
 * An attempt is taken when the log says that it was opened, whether or not anybody was told. A request that got no answer is
 * repeated; one that was refused for good is a broken invariant, and reported as such.
 */
import { HoldpointError } from "@holdpoint/errors";
import { parseJson } from "@holdpoint/eventsourcing";
import type { Messenger } from "@holdpoint/participant";
import { type Episode, RpcReply, type RunRequest, seedSubject, type Role } from "@holdpoint/schemas";
import { setTimeout as delay } from "node:timers/promises";
import type { Order } from "./next-step.ts";
import type { RunView } from "./run-view.ts";
import { taskJson } from "./same-run.ts";

const requestTimeoutMs = 30_000;
const firstPauseMs = 20;
const maxPauseMs = 1000;
/** What the log may not have told us yet is asked again this often: a mark, a restore, the end of another attempt. */
const patience = 60;

/** Refusals that what is in the log, and not here yet, explains. */
const explained: ReadonlySet<string> = new Set(["stale_attempt", "session_conflict"]);

export interface DispatcherOptions {
  readonly messenger: Messenger;
  readonly run: string;
  readonly view: RunView;
  readonly seed: number;
  /** null: unbounded. */
  readonly budgetMs: number | null;
  readonly trouble: (what: string, error: unknown) => void;
}

export class Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #sending = new Map<string, { readonly over: AbortController; readonly done: Promise<void> }>();
  #broken: Error | undefined;

  constructor(options: DispatcherOptions) {
    this.#options = options;
  }

  isTaken(episode: Episode): boolean {
    return this.#options.view.isOpened(episode);
  }

  /**
   * Sees to it that exactly these are being sent.
   *
   * @throws what refused one for good
   */
  send(orders: readonly Order[]): void {
    if (this.#broken !== undefined) throw this.#broken;
    const wanted = new Set(orders.map(keyOf));
    for (const [key, { over }] of this.#sending) if (!wanted.has(key)) over.abort();
    for (const order of orders) if (!this.#sending.has(keyOf(order))) this.#start(order);
  }

  /** Sends nothing from here on; returns when nothing is on its way any more. */
  async close(): Promise<void> {
    const sending = [...this.#sending.values()];
    for (const { over } of sending) over.abort();
    await Promise.all(sending.map(({ done }) => done));
  }

  #start(order: Order): void {
    const over = new AbortController();
    const key = keyOf(order);
    const done = this.#sendOne(order, over.signal)
      .catch((error: unknown) => {
        if (!over.signal.aborted) this.#broken = error instanceof Error ? error : new Error(String(error));
      })
      .finally(() => {
        this.#sending.delete(key);
        this.#options.view.changed();
      });
    this.#sending.set(key, { over, done });
  }

  async #sendOne(order: Order, signal: AbortSignal): Promise<void> {
    let refusals = 0;
    for (let pauseMs = firstPauseMs; !this.isTaken(order); pauseMs = Math.min(pauseMs * 2, maxPauseMs)) {
      const error = await this.#ask(order, signal);
      if (error === undefined) return await this.#untilTaken(order, signal);
      signal.throwIfAborted();
      if (error.disposition !== "retry" && !explained.has(error.code)) throw error;
      refusals = explained.has(error.code) ? refusals + 1 : 0;
      if (refusals > patience) throw error;
      if (refusals > 1) this.#options.trouble("the environment refuses a dispatch", error);
      await this.#pause(pauseMs, signal);
    }
  }

  /** The answer comes after the event, but may be here before it. */
  async #untilTaken(order: Order, signal: AbortSignal): Promise<void> {
    await this.#options.view.until(() => this.isTaken(order), signal);
  }

  /** One request. @returns why it was not taken */
  async #ask({ rollout, attempt, group }: Order, signal: AbortSignal): Promise<HoldpointError | undefined> {
    const { messenger, run, seed, budgetMs } = this.#options;
    const request: RunRequest = {
      rollout,
      attempt,
      task: taskJson(group, seed),
      agent: this.#instanceOf("agent"),
      resources: this.#instanceOf("resources"),
      budgetMs,
      policyVersion: group.policyVersion,
    };
    const subject = seedSubject(run, "environment", this.#instanceOf("environment"));
    try {
      const options = { timeoutMs: requestTimeoutMs, signal };
      return problemIn(await messenger.request(subject, JSON.stringify(request), options), subject);
    } catch (error) {
      if (HoldpointError.is(error)) return error;
      throw error;
    }
  }

  /** The oldest of its role. */
  #instanceOf(role: Role): string {
    return this.#options.view.directory.of(role)[0]?.instance ?? "main";
  }

  /** Ends early when an environment joins: it may be the one that did not answer. */
  async #pause(pauseMs: number, signal: AbortSignal): Promise<void> {
    const joined = new AbortController();
    const stop = this.#options.view.directory.onJoined(({ role }) => {
      if (role === "environment") joined.abort();
    });
    try {
      await delay(pauseMs, undefined, { signal: AbortSignal.any([joined.signal, signal]) }).catch(() => {});
      signal.throwIfAborted();
    } finally {
      stop();
    }
  }
}

function problemIn(reply: Uint8Array, subject: string): HoldpointError | undefined {
  const json = parseJson(reply);
  const parsed = RpcReply.safeParse(json.ok ? json.value : undefined);
  if (!parsed.success) return new HoldpointError("unavailable", `no rpc reply came from ${subject}`);
  if (parsed.data.ok) return undefined;
  const { code, message, details } = parsed.data.problem;
  return new HoldpointError(code, message, details === undefined ? {} : { details });
}

function keyOf({ rollout, attempt }: Episode): string {
  return `${rollout}/${attempt}`;
}
