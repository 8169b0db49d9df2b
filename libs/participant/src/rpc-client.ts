/**
 * Asking a participant for work on a session, for as long as it takes.
 *
 * Every request carries a name that the callee knows again (rollout, turn, index), so asking twice is harmless. A callee that
 * is away is asked again when its next incarnation joins.
 */
import { type ErrorCode, HoldpointError } from "@holdpoint/errors";
import { parseJson } from "@holdpoint/eventsourcing";
import { type Episode, type Role, RpcReply, rpcSubject } from "@holdpoint/schemas";
import { setTimeout as delay } from "node:timers/promises";
import * as z from "zod";
import type { Directory } from "./directory.ts";
import type { Messenger } from "./messenger.ts";

/** How long one request is waited for before it is repeated. */
const requestTimeoutMs = 30_000;
const firstPauseMs = 20;
const maxPauseMs = 1_000;

export interface Call<T> {
  readonly episode: Episode;
  readonly role: Role;
  readonly instance: string;
  readonly method: string;
  readonly body: object;
  readonly reply: z.ZodType<T>;
  readonly signal?: AbortSignal | undefined;
  /** Told of each request that is made again, by the code of its answer; undefined: nobody answered it. */
  readonly again?: (code: ErrorCode | undefined) => void;
}

export class RpcClient {
  readonly #messenger: Messenger;
  readonly #run: string;
  readonly #directory: Directory;

  constructor(messenger: Messenger, run: string, directory: Directory) {
    this.#messenger = messenger;
    this.#run = run;
    this.#directory = directory;
  }

  /**
   * Asks until there is an answer: repeats what met nobody, timed out, or was told to come back later.
   *
   * @throws HoldpointError with the callee's code, where it said no
   */
  async call<T>(call: Call<T>): Promise<T> {
    const { episode, role, instance, method, body, signal } = call;
    const subject = rpcSubject(this.#run, episode, role, method);
    const text = JSON.stringify({ to: instance, ...body });
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, maxPauseMs)) {
      signal?.throwIfAborted();
      const reply = await this.#once(subject, text, call);
      if (reply !== undefined) return dataOf(call, reply.data);
      await this.#pause(call, pauseMs);
    }
  }

  /** One request: its reply, or undefined where it is to be repeated. */
  async #once(subject: string, body: string, call: Call<unknown>): Promise<{ readonly data: unknown } | undefined> {
    const joined = this.#joined(call);
    let bytes: Uint8Array | undefined;
    try {
      const signal = call.signal === undefined ? joined.signal : AbortSignal.any([joined.signal, call.signal]);
      bytes = await this.#messenger.request(subject, body, { timeoutMs: requestTimeoutMs, signal });
      return answer(bytes, subject);
    } catch (error) {
      call.signal?.throwIfAborted();
      const isAgain = HoldpointError.is(error) && error.disposition === "retry";
      if (!joined.signal.aborted && !isAgain) throw error;
      call.again?.(isAgain && bytes !== undefined ? error.code : undefined);
      return undefined;
    } finally {
      joined.stop();
    }
  }

  async #pause(call: Call<unknown>, pauseMs: number): Promise<void> {
    const joined = this.#joined(call);
    const signal = call.signal === undefined ? joined.signal : AbortSignal.any([joined.signal, call.signal]);
    await delay(pauseMs, undefined, { signal }).catch(() => {}); // the caller looks at its own signal
    joined.stop();
  }

  /** Aborted as soon as a new incarnation of the callee joins: the one before will not answer any more. */
  #joined({ role, instance }: Call<unknown>): { readonly signal: AbortSignal; stop(): void } {
    const controller = new AbortController();
    const stop = this.#directory.onJoined((member) => {
      if (member.role === role && member.instance === instance) controller.abort();
    });
    return { signal: controller.signal, stop };
  }
}

function dataOf<T>({ role, instance, method, reply }: Call<T>, data: unknown): T {
  const parsed = reply.safeParse(data);
  if (parsed.success) return parsed.data;
  const words = `${role} ${instance} answered ${method} with something else than this version expects`;
  throw new HoldpointError("unavailable", `${words}: ${z.prettifyError(parsed.error)}`);
}

/** What a reply says. @throws HoldpointError with the callee's code, where it said no; `unavailable` where it is no reply */
export function answer(bytes: Uint8Array, subject: string): { readonly data: unknown } {
  const json = parseJson(bytes);
  const reply = RpcReply.safeParse(json.ok ? json.value : undefined);
  if (!reply.success) throw new HoldpointError("unavailable", `no rpc reply came from ${subject}`);
  if (reply.data.ok) return { data: reply.data.data };
  const { code, message, details } = reply.data.problem;
  throw new HoldpointError(code, message, details === undefined ? {} : { details });
}
