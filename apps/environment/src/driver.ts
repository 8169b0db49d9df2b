/**
 * Drives one episode through its stages, from wherever its log says it stands.
 *
 * 1. A bookmark is in the log before its step runs. A step that ends is followed by the next bookmark.
 * 2. Between steps the episode parks while a checkpoint is open. A `wait` step is in flight for the checkpoint, a `replay` step
 *    is not: it counts as parked at the boundary before it.
 * 3. Cleanup runs once, whatever happened, and outside the budget.
 */
import { HoldpointError } from "@holdpoint/errors";
import { type EpisodeState, joinTerms, nextStep, restartOf, type Step } from "@holdpoint/episode";
import { problemOf } from "@holdpoint/participant";
import {
  ActivateReply,
  CloseReply,
  type Content,
  type EnvironmentEvent,
  type Episode,
  type Role,
  SeedReply,
  type Stage,
  VerifyReply,
} from "@holdpoint/schemas";
import * as z from "zod";
import type { Environment } from "./environment.ts";
import { BudgetSpent, type Meter } from "./meter.ts";

type Ended = Extract<EnvironmentEvent, { type: "episode.ended" }>["data"];
type Ending = Pick<Ended, "status" | "reward" | "verdict" | "why">;

/** What of a verdict the environment reads. The rest is for whoever trains. */
const Verdict = z.looseObject({ reward: z.number().nullable() });

export class Driver {
  readonly #participant: Environment;
  readonly #meter: Meter;
  readonly #episode: Episode;
  readonly #controller = new AbortController();
  readonly done: Promise<void>;

  /** Starts at once. `done` never rejects; `failed` is told of what it could not record. */
  constructor(participant: Environment, meter: Meter, { rollout, attempt }: Episode, failed: (error: unknown) => void) {
    this.#participant = participant;
    this.#meter = meter;
    this.#episode = { rollout, attempt };
    this.done = this.#drive().catch(failed);
  }

  /** Stops the episode without a result: it was retired. */
  async cancel(): Promise<void> {
    this.#controller.abort(new HoldpointError("stale_attempt", "the attempt was retired"));
    await this.done;
  }

  async #drive(): Promise<void> {
    const stopWatching = this.#meter.watch(this.#episode, this.#controller);
    const ending = await this.#steps().catch((error: unknown) => endingOf(error));
    stopWatching();
    try {
      if (ending !== undefined) await this.#end(ending);
    } catch (error) {
      if (!HoldpointError.is(error, "stale_attempt")) throw error; // retired meanwhile: nobody waits for its end
    } finally {
      this.#meter.forget(this.#episode);
    }
  }

  /** Takes steps until the last. @throws what ends the episode otherwise */
  async #steps(): Promise<Ending> {
    for (;;) {
      await this.#participant.boundary(this.#episode, this.#signal);
      const step = nextStep(this.#state);
      if (step.stage === "return") return this.#returned();
      if (this.#state.stage === "none") await this.#bookmark({ stage: "seed" });
      await this.#inFlight(step, () => this.#take(step));
    }
  }

  #inFlight(step: Step, work: () => Promise<void>): Promise<void> {
    const firstSeed = step.stage === "seed" && this.#session.from === undefined;
    const admitted = { reason: step.stage, firstSeed, blocks: step.mode === "wait" };
    return this.#participant.admission.run(this.#episode, admitted, work);
  }

  async #take({ stage, reseeds }: Step): Promise<void> {
    if (stage === "seed" || reseeds) await this.#seed(stage);
    switch (stage) {
      case "seed":
      case "return":
        return;
      case "invoke_agent":
        return this.#bookmark({ stage: "close_agent", output: await this.#activate() });
      case "close_agent":
        await this.#close("agent");
        return this.#bookmark({ stage: "verify" });
      case "verify":
        return this.#bookmark({
          stage: "return",
          verdict: (await this.#ask("resources", "verify", VerifyReply)).verdict,
        });
    }
  }

  /** Seeds resources, then the agent; at the first seed the terms are recorded with the next bookmark. */
  async #seed(stage: Stage): Promise<void> {
    const { sessionId, task } = this.#state;
    const seed: unknown = JSON.parse(await this.#participant.contents.read(task));
    const body = { ...this.#episode, sessionId, seed };
    const resources = await this.#ask("resources", "seed", SeedReply, body);
    const agent = await this.#ask("agent", "seed", SeedReply, body);
    if (stage !== "seed") return;
    const terms = joinTerms(resources.terms, agent.terms);
    const why = resources.restart ?? agent.restart ?? restartOf(terms);
    if (why !== undefined) {
      await this.#participant.record({ type: "session.restart_marked", data: { ...this.#episode, why } });
    }
    await this.#bookmark({ stage: "invoke_agent", terms });
  }

  async #activate(): Promise<Content> {
    for (;;) {
      const body = { policyVersion: this.#state.policyVersion };
      const reply = await this.#ask("agent", "activate", ActivateReply, body);
      if (reply.status === "ended") return reply.output;
    }
  }

  #ask<T>(role: Role & ("agent" | "resources"), method: string, reply: z.ZodType<T>, body: object = {}): Promise<T> {
    const instance = role === "agent" ? this.#state.agent : this.#state.resources;
    return this.#participant.calls.call({
      episode: this.#episode,
      role,
      instance,
      method,
      body,
      reply,
      signal: this.#signal,
    });
  }

  async #close(role: "agent" | "resources"): Promise<void> {
    const { agent, resources } = this.#state;
    const instance = role === "agent" ? agent : resources;
    try {
      await this.#participant.calls.call({
        episode: this.#episode,
        role,
        instance,
        method: "close",
        body: {},
        reply: CloseReply,
      });
    } catch (error) {
      if (!HoldpointError.is(error, "not_found") && !HoldpointError.is(error, "stale_attempt")) throw error;
    }
  }

  #bookmark(
    data: Omit<Extract<EnvironmentEvent, { type: "episode.bookmarked" }>["data"], keyof Episode>,
  ): Promise<void> {
    return this.#participant.record({ type: "episode.bookmarked", data: { ...this.#episode, ...data } });
  }

  async #returned(): Promise<Ending> {
    const { verdict } = this.#state;
    if (verdict === null) return { status: "failed", reward: null, verdict, why: "there is no verdict" };
    const { reward } = Verdict.parse(JSON.parse(await this.#participant.contents.read(verdict)));
    return { status: "finished", reward, verdict, why: null };
  }

  async #end(ending: Ending): Promise<void> {
    const { sessionId, policyVersion } = this.#state;
    const chargedMs = await this.#meter.chargeOf(this.#episode, this.#state);
    if (ending.status !== "finished") await this.#close("agent");
    await this.#close("resources");
    await this.#participant.boundary(this.#episode);
    const data = { ...this.#episode, sessionId, policyVersion, chargedMs, ...ending };
    await this.#participant.end({ type: "episode.ended", data });
  }

  get #signal(): AbortSignal {
    return this.#controller.signal;
  }

  get #session() {
    const session = this.#participant.sessions.get(this.#episode);
    if (session === undefined) throw new HoldpointError("stale_attempt", "the session is over");
    return session;
  }

  get #state(): EpisodeState {
    return this.#session.state;
  }
}

/** How an episode ends by `error`; undefined where it does not: the attempt is not ours any more. */
function endingOf(error: unknown): Ending | undefined {
  if (HoldpointError.is(error, "stale_attempt")) return undefined;
  if (error instanceof BudgetSpent) return { status: "timed_out", reward: null, verdict: null, why: "budget used up" };
  return { status: "failed", reward: null, verdict: null, why: problemOf(error).message };
}
