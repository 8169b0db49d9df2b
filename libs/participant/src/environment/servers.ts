/** What an episode asks of its agent and its resources server. */
import { type ErrorCode, HoldpointError } from "@holdpoint/errors";
import { type EpisodeState, joinTerms, restartOf } from "@holdpoint/episode";
import {
  ActivateReply,
  CloseReply,
  type Content,
  type Episode,
  type Json,
  SeedReply,
  type SeedTerms,
  VerifyReply,
} from "@holdpoint/schemas";
import { setTimeout as delay } from "node:timers/promises";
import type * as z from "zod";
import type { Environment } from "./environment.ts";
import type { Orphans, Served } from "./orphans.ts";

/** How often a server that holds nothing of the episode is asked again, where none of its processes joins, in milliseconds. */
const lostPauseMs = 10_000;

export interface ServersOptions {
  readonly participant: Environment;
  readonly episode: Episode;
  readonly state: () => EpisodeState;
  readonly orphans: Orphans;
}

/** What both servers said when they were seeded. */
export interface Seeded {
  readonly terms: SeedTerms;
  /** Why the episode cannot be captured; undefined: it can. */
  readonly restart: string | undefined;
}

interface Given {
  readonly body: object;
  readonly signal: AbortSignal;
}

export class Servers {
  readonly #participant: Environment;
  readonly #episode: Episode;
  readonly #state: () => EpisodeState;
  readonly #orphans: Orphans;
  #held: string | undefined;

  constructor({ participant, episode, state, orphans }: ServersOptions) {
    this.#participant = participant;
    this.#episode = episode;
    this.#state = state;
    this.#orphans = orphans;
  }

  /** By what the episode is held up: what it was told last where it asks again; undefined: by no server. Fixed words and codes alone. */
  get heldUpBy(): string | undefined {
    return this.#held;
  }

  /** Seeds resources, then the agent, which is handed the access that it was given. That goes nowhere else. */
  async seed(seeds: { readonly resources: Json; readonly agent: Json }, signal: AbortSignal): Promise<Seeded> {
    const named = { ...this.#episode, sessionId: this.#state().sessionId };
    const resources = await this.#ask("resources", "seed", SeedReply, {
      body: { ...named, seed: seeds.resources },
      signal,
    });
    const access = resources.access !== undefined && { access: resources.access };
    const body = { ...named, seed: seeds.agent, ...access };
    const agent = await this.#ask("agent", "seed", SeedReply, { body, signal });
    const terms = joinTerms(resources.terms, agent.terms);
    return { terms, restart: resources.restart ?? agent.restart ?? restartOf(terms) };
  }

  /** Returns when the activation has ended, with its output. */
  async activate(signal: AbortSignal): Promise<Content> {
    for (;;) {
      const body = { policyVersion: this.#state().policyVersion };
      const reply = await this.#work("agent", "activate", ActivateReply, { body, signal });
      if (reply.status === "ended") return reply.output;
    }
  }

  /** @returns the verdict, as JSON */
  async verify(signal: AbortSignal): Promise<Content> {
    const { output } = this.#state();
    const body = output === null ? {} : { output };
    return (await this.#work("resources", "verify", VerifyReply, { body, signal })).verdict;
  }

  /** Ends the session of `role`, if there is one. */
  async close(role: Served, signal: AbortSignal): Promise<void> {
    try {
      await this.#ask(role, "close", CloseReply, { body: {}, signal });
    } catch (error) {
      if (!HoldpointError.is(error, "not_found") && !HoldpointError.is(error, "stale_attempt")) throw error;
      this.#held = undefined;
    }
  }

  /** Asks for work on a session. Where nobody holds it any more, the episode is a restart, and waits for who has held it. */
  async #work<T>(role: Served, method: string, reply: z.ZodType<T>, given: Given): Promise<T> {
    for (;;) {
      try {
        return await this.#ask(role, method, reply, given);
      } catch (error) {
        const isLost =
          HoldpointError.is(error, "not_found") && (await this.#orphans.isLost(this.#episode, role, given.signal));
        if (!isLost) throw error;
        this.#held = toldBy(`${role} ${this.#state()[role]}`, method, "not_found");
      }
      await this.#joined(role, given.signal);
    }
  }

  /** Returns when a process of the server joins, or after a while. @throws the signal's reason */
  async #joined(role: Served, signal: AbortSignal): Promise<void> {
    const instance = this.#state()[role];
    const joined = new AbortController();
    const stop = this.#participant.directory.onJoined((member) => {
      if (member.role === role && member.instance === instance) joined.abort();
    });
    await delay(lostPauseMs, undefined, { signal: AbortSignal.any([joined.signal, signal]) }).catch(() => {});
    stop();
    signal.throwIfAborted();
  }

  async #ask<T>(role: Served, method: string, reply: z.ZodType<T>, given: Given): Promise<T> {
    const instance = this.#state()[role];
    const again = (code: ErrorCode | undefined) => void (this.#held = toldBy(`${role} ${instance}`, method, code));
    const call = { episode: this.#episode, role, instance, method, reply, again, ...given };
    const data = await this.#participant.calls.call(call);
    this.#held = undefined;
    return data;
  }
}

/** What an answer means that has its request made again. */
const meanings: Partial<Record<ErrorCode, string>> = {
  admission_closed: "a checkpoint was open there",
  not_found: "no worker of it that is expected holds the session",
  unavailable: "it could not do that then; the log of its process may say why",
};

function toldBy(server: string, method: string, code: ErrorCode | undefined): string {
  if (code === undefined) return `the last request to ${server} to ${method} was not answered`;
  return `the last answer of ${server} to ${method} was ${code}: ${meanings[code] ?? "it is asked again"}`;
}
