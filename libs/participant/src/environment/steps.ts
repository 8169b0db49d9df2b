/**
 * The steps of one episode, as `run` takes them: from the log where they are done, else from the servers.
 *
 * 1. A bookmark is in the log before its step runs. A step that ends is followed by the next bookmark, which holds what it gave.
 * 2. Before each step that is not done the episode parks while a checkpoint is open. A `wait` step is in flight for the
 *    checkpoint, a `replay` step is not: it counts as parked at the boundary before it.
 * 3. What a step threw is what the episode ends with, whatever `run` makes of it.
 */
import { HoldpointError } from "@holdpoint/errors";
import { parseJson } from "@holdpoint/eventsourcing";
import { type EpisodeState, nextStep, type Step } from "@holdpoint/episode";
import { type Content, type EnvironmentEvent, type Episode, Json, type Stage, stages } from "@holdpoint/schemas";
import * as z from "zod";
import { type Seeds, type UntaskedRun, Verdict } from "./define-environment.ts";
import type { Environment } from "./environment.ts";
import type { Servers } from "./servers.ts";
import { StepOrder, type TakenStage } from "./step-order.ts";

type Bookmarked = Extract<EnvironmentEvent, { type: "episode.bookmarked" }>["data"];

const GivenSeeds = z.strictObject({ resources: Json.optional(), agent: Json.optional() });

export interface StepsOptions {
  readonly participant: Environment;
  readonly episode: Episode;
  /** Of the environment, for messages. */
  readonly name: string;
  readonly servers: Servers;
  /** The episode's, now. @throws HoldpointError `stale_attempt` where it is over */
  readonly state: () => EpisodeState;
  /** What the servers are seeded with where `run` says nothing. */
  readonly task: Json;
  /** Aborted with why, when the episode ends without a result. */
  readonly controller: AbortController;
}

export class Steps {
  readonly #options: StepsOptions;
  readonly #order: StepOrder;
  #seeds: { readonly resources: Json; readonly agent: Json };
  #underWay: Promise<unknown> = Promise.resolve();

  constructor(options: StepsOptions) {
    this.#options = options;
    this.#order = new StepOrder(options.name);
    this.#seeds = { resources: options.task, agent: options.task };
  }

  /** What `run` gets. */
  get forRun(): UntaskedRun {
    const { controller, episode } = this.#options;
    const { sessionId, policyVersion } = this.#state;
    return {
      rollout: episode.rollout,
      sessionId,
      policyVersion,
      signal: controller.signal,
      seed: (seeds = {}) => this.#step("seed", { before: () => this.#seedWith(seeds), recorded: async () => {} }),
      invokeAgent: () => this.#step("invoke_agent", { recorded: () => this.#text(this.#state.output) }),
      closeAgent: () => this.#step("close_agent", { recorded: async () => {} }),
      verify: () => this.#step("verify", { recorded: () => this.#verdict() }),
    };
  }

  /**
   * Returns at the boundary behind the last step.
   *
   * @throws HoldpointError `invalid_phase` where not every step was taken
   */
  async finish(): Promise<void> {
    this.#order.finish();
    await this.#boundary();
  }

  /** Returns when no step is under way. */
  async idle(): Promise<void> {
    await this.#underWay;
  }

  #step<T>(stage: TakenStage, how: { readonly before?: () => void; readonly recorded: () => Promise<T> }): Promise<T> {
    const taken = this.#taken(stage, how);
    // Whoever does not await a step is told by the end of the episode, not by the end of this process.
    const settled = taken.then(
      () => undefined,
      (error: unknown) => this.#options.controller.abort(error),
    );
    this.#underWay = Promise.all([this.#underWay, settled]);
    return taken;
  }

  async #taken<T>(
    stage: TakenStage,
    { before, recorded }: { readonly before?: () => void; readonly recorded: () => Promise<T> },
  ): Promise<T> {
    this.#order.begin(stage);
    before?.();
    if (!isBehind(this.#state, stage)) await this.#live();
    const value = await recorded();
    this.#options.controller.signal.throwIfAborted();
    this.#order.end();
    return value;
  }

  /** Takes the step of the latest bookmark. */
  async #live(): Promise<void> {
    await this.#boundary();
    const { participant, episode } = this.#options;
    const step = nextStep(this.#state);
    if (this.#state.stage === "none") await this.#bookmark({ stage: "seed" });
    const firstSeed = step.stage === "seed" && this.#session.from === undefined;
    const admitted = { reason: step.stage, firstSeed, blocks: step.mode === "wait" };
    await participant.admission.run(episode, admitted, () => this.#work(step));
  }

  async #work({ stage, reseeds }: Step): Promise<void> {
    const { servers } = this.#options;
    if (reseeds) await this.#seed();
    switch (stage) {
      case "seed":
        return this.#bookmark({ stage: "invoke_agent", terms: await this.#seed() });
      case "invoke_agent":
        return this.#bookmark({ stage: "close_agent", output: await servers.activate(this.#signal) });
      case "close_agent":
        await servers.close("agent", this.#signal);
        return this.#bookmark({ stage: "verify" });
      case "verify":
        return this.#bookmark({ stage: "return", verdict: await servers.verify(this.#signal) });
      case "return":
        return;
    }
  }

  /** Seeds both servers. The mark of an episode that cannot be captured is in the log before the bookmark behind it. */
  async #seed() {
    const { participant, episode, servers } = this.#options;
    const { terms, restart: why } = await servers.seed(this.#seeds, this.#signal);
    if (why !== undefined && !this.#session.status.restart) {
      await participant.record({ type: "session.restart_marked", data: { ...episode, why } });
    }
    return terms;
  }

  #seedWith(given: Seeds): void {
    const seeds = GivenSeeds.safeParse(given);
    if (!seeds.success) {
      const words = `seed of environment ${this.#options.name} was given what it does not take`;
      const expected = "expected { resources, agent }, each JSON, or left out for the task";
      throw new HoldpointError("invalid_request", `${words}; ${expected}:\n${z.prettifyError(seeds.error)}`);
    }
    const { resources = this.#options.task, agent = this.#options.task } = seeds.data;
    this.#seeds = { resources, agent };
  }

  #boundary(): Promise<void> {
    return this.#options.participant.boundary(this.#options.episode, this.#signal);
  }

  #bookmark(data: Omit<Bookmarked, keyof Episode>): Promise<void> {
    const { participant, episode } = this.#options;
    return participant.record({ type: "episode.bookmarked", data: { ...episode, ...data } });
  }

  #text(content: Content | null): Promise<string> {
    if (content !== null) return this.#options.participant.contents.read(content);
    throw new HoldpointError("invalid_checkpoint_state", "the log does not hold what this step gave");
  }

  async #verdict(): Promise<Verdict> {
    const json = parseJson(new TextEncoder().encode(await this.#text(this.#state.verdict)));
    const verdict = Verdict.safeParse(json.ok ? json.value : undefined);
    if (verdict.success) return verdict.data;
    const words = `resources ${this.#state.resources} gave a verdict without a reward, which is a number`;
    throw new HoldpointError("unavailable", `${words}:\n${z.prettifyError(verdict.error)}`);
  }

  get #signal(): AbortSignal {
    return this.#options.controller.signal;
  }

  get #session() {
    const session = this.#options.participant.sessions.get(this.#options.episode);
    if (session === undefined) throw new HoldpointError("stale_attempt", "the session is over");
    return session;
  }

  get #state(): EpisodeState {
    return this.#options.state();
  }
}

/** Whether the step is done: the latest bookmark is behind it. */
function isBehind({ stage }: EpisodeState, step: Stage): boolean {
  return stage !== "none" && stages.indexOf(stage) > stages.indexOf(step);
}
