/** What an episode asks of its agent and its resources server. */
import { HoldpointError } from "@holdpoint/errors";
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
import type * as z from "zod";
import type { Environment } from "./environment.ts";

type Served = "agent" | "resources";

/** What both servers said when they were seeded. */
export interface Seeded {
  readonly terms: SeedTerms;
  /** Why the episode cannot be captured; undefined: it can. */
  readonly restart: string | undefined;
}

export class Servers {
  readonly #participant: Environment;
  readonly #episode: Episode;
  readonly #state: () => EpisodeState;

  constructor(participant: Environment, episode: Episode, state: () => EpisodeState) {
    this.#participant = participant;
    this.#episode = episode;
    this.#state = state;
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
      const reply = await this.#ask("agent", "activate", ActivateReply, { body, signal });
      if (reply.status === "ended") return reply.output;
    }
  }

  /** @returns the verdict, as JSON */
  async verify(signal: AbortSignal): Promise<Content> {
    const { output } = this.#state();
    const body = output === null ? {} : { output };
    return (await this.#ask("resources", "verify", VerifyReply, { body, signal })).verdict;
  }

  /** Ends the session of `role`, if there is one. */
  async close(role: Served, signal: AbortSignal): Promise<void> {
    try {
      await this.#ask(role, "close", CloseReply, { body: {}, signal });
    } catch (error) {
      if (!HoldpointError.is(error, "not_found") && !HoldpointError.is(error, "stale_attempt")) throw error;
    }
  }

  #ask<T>(
    role: Served,
    method: string,
    reply: z.ZodType<T>,
    given: { readonly body: object; readonly signal: AbortSignal },
  ): Promise<T> {
    const { agent, resources } = this.#state();
    const instance = role === "agent" ? agent : resources;
    return this.#participant.calls.call({ episode: this.#episode, role, instance, method, reply, ...given });
  }
}
