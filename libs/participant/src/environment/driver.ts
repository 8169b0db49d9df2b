/**
 * Drives one episode: runs the definition's `run` from wherever the log says that the episode stands, and records how it ends.
 *
 * Cleanup runs once, whatever happened, and outside the budget.
 */
import { isRefused } from "@holdpoint/checkpoint";
import { HoldpointError } from "@holdpoint/errors";
import type { EpisodeState } from "@holdpoint/episode";
import { parseJson } from "@holdpoint/eventsourcing";
import { type EnvironmentEvent, type Episode, Json } from "@holdpoint/schemas";
import type { Logger } from "@holdpoint/telemetry";
import { contained, ours } from "../author-code.ts";
import { untilAborted } from "../until-aborted.ts";
import type { EnvironmentDefinition, Outcome, UntaskedRun } from "./define-environment.ts";
import type { Environment } from "./environment.ts";
import { BudgetSpent, type Meter } from "./meter.ts";
import type { Orphans } from "./orphans.ts";
import { Servers } from "./servers.ts";
import { Steps } from "./steps.ts";
import { thrownBy, whyOf } from "./why.ts";

type Ended = Extract<EnvironmentEvent, { type: "episode.ended" }>["data"];
type Ending = Pick<Ended, "status" | "reward" | "verdict" | "why">;

/** How long the end of an episode waits for one server to close its session, in milliseconds. */
const closeMs = 5_000;
/** How long the mark of an attempt that was said to be over may be on its way here, in milliseconds. */
const markMs = 5_000;
/** How long a server is asked to close it, so that one that was started again meanwhile hears of it, in milliseconds. */
const closeInAllMs = 600_000;

export interface DriverOptions {
  readonly definition: EnvironmentDefinition;
  readonly participant: Environment;
  readonly meter: Meter;
  readonly orphans: Orphans;
  readonly logger: Logger;
}

export class Driver {
  readonly #options: DriverOptions;
  readonly #episode: Episode;
  readonly #servers: Servers;
  /** Ends the work, with why. */
  readonly #controller = new AbortController();
  /** Ends the cleanup as well: whoever retired the attempt frees what it held. */
  readonly #retired = new AbortController();
  /** Never rejects. */
  readonly done: Promise<void>;

  /** Starts at once. */
  constructor(options: DriverOptions, { rollout, attempt }: Episode) {
    this.#options = options;
    this.#episode = { rollout, attempt };
    const { participant, orphans } = options;
    this.#servers = new Servers({ participant, orphans, episode: this.#episode, state: () => this.#state });
    this.done = this.#drive().catch((error: unknown) => {
      options.logger.error({ err: error, rollout, attempt }, "an episode was left");
    });
  }

  /** Stops the episode without a result: it was retired. */
  async cancel(): Promise<void> {
    const reason = new HoldpointError("stale_attempt", "the attempt was retired");
    this.#controller.abort(reason);
    this.#retired.abort(reason);
    await this.done;
  }

  async #drive(): Promise<void> {
    const { meter } = this.#options;
    const stopWatching = meter.watch(this.#episode, this.#controller);
    const ending = await this.#ending();
    stopWatching();
    try {
      if (ending !== undefined) await this.#end(ending);
    } catch (error) {
      if (!HoldpointError.is(error, "stale_attempt")) throw error; // retired meanwhile: nobody waits for its end
    } finally {
      meter.forget(this.#episode);
    }
  }

  /** How the episode ends; undefined where it does not: the attempt is not ours any more. */
  async #ending(): Promise<Ending | undefined> {
    try {
      const { reward } = await this.#run();
      return { status: "finished", reward, verdict: this.#state.verdict, why: null };
    } catch (error) {
      return await this.#endingOf(error);
    }
  }

  /** @throws what ends the episode otherwise */
  async #run(): Promise<Outcome> {
    const { definition, participant } = this.#options;
    const { signal } = this.#controller;
    const task = await this.#task();
    const run = await definition.bind(task);
    const steps = new Steps({
      participant,
      episode: this.#episode,
      name: definition.name,
      servers: this.#servers,
      state: () => this.#state,
      task,
      controller: this.#controller,
    });
    try {
      signal.throwIfAborted();
      const outcome = await untilAborted(
        contained(this.#piece, (over) => run(forAuthor(steps.forRun, over))),
        signal,
      );
      await steps.finish();
      return outcome;
    } catch (error) {
      this.#controller.abort(thrownBy(definition.name, error)); // whatever is still under way; where that was done before, it says why
      throw signal.reason;
    } finally {
      await steps.idle();
    }
  }

  get #piece() {
    const { definition, participant } = this.#options;
    return {
      title: `run of environment ${definition.name}`,
      about: { role: "environment", hook: "run", ...this.#episode },
      signal: this.#controller.signal,
      trouble: participant.options.trouble,
    } as const;
  }

  async #task(): Promise<Json> {
    const text = await this.#options.participant.contents.read(this.#state.task);
    const json = parseJson(new TextEncoder().encode(text));
    return Json.parse(json.ok ? json.value : undefined);
  }

  async #endingOf(error: unknown): Promise<Ending | undefined> {
    const lost = { reward: null, verdict: null };
    if (error instanceof BudgetSpent) {
      const { heldUpBy } = this.#servers;
      const why = heldUpBy === undefined ? "budget used up" : `budget used up; ${heldUpBy}`;
      return { ...lost, status: "timed_out", why };
    }
    const isStale = HoldpointError.is(error, "stale_attempt");
    if (isStale && (await this.#isOver())) return undefined;
    this.#options.logger.warn({ err: error, ...this.#episode }, "an episode failed");
    const why = error instanceof Error ? whyOf(error) : "the log of the environment's process says why";
    return { ...lost, status: "failed", why: isStale ? `${unmarked}: ${why}` : why };
  }

  /**
   * Whether the attempt is not ours any more. A server, or `run`, may say so, but only `control` decides it: the mark that a server
   * has seen already may come here a moment later.
   */
  async #isOver(): Promise<boolean> {
    const { participant } = this.#options;
    const isOver = () =>
      this.#retired.signal.aborted ||
      isRefused(participant.gate, this.#episode) ||
      participant.sessions.get(this.#episode) === undefined;
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), markMs);
    const signal = AbortSignal.any([this.#retired.signal, late.signal]);
    await participant.admission.readiness.until(isOver, signal).catch(() => {}); // it is looked at below
    clearTimeout(timer);
    return isOver();
  }

  async #end(ending: Ending): Promise<void> {
    const { participant, meter } = this.#options;
    const { sessionId, policyVersion } = this.#state;
    const chargedMs = await meter.chargeOf(this.#episode, this.#state);
    await participant.record(); // throws where this process appends no more: what its successor goes on with is not closed
    if (ending.status !== "finished") await this.#close("agent");
    await this.#close("resources");
    await participant.boundary(this.#episode, this.#retired.signal);
    const data = { ...this.#episode, sessionId, policyVersion, chargedMs, ...ending };
    await participant.end({ type: "episode.ended", data });
  }

  /** A server that does not close its session keeps nobody from hearing how the episode has ended: it is asked on beside. */
  async #close(role: "agent" | "resources"): Promise<void> {
    const trouble = (error: unknown) => {
      const words = `a session of ${this.#episode.rollout} was not closed by ${role}`;
      this.#options.participant.options.trouble(words, error);
    };
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(tooLate()), closeMs);
    const signal = AbortSignal.any([this.#retired.signal, AbortSignal.timeout(closeInAllMs)]);
    const closed = this.#servers.close(role, signal).catch(trouble);
    try {
      await untilAborted(closed, late.signal);
    } catch (error) {
      trouble(error);
    } finally {
      clearTimeout(timer);
    }
  }

  get #state(): EpisodeState {
    const session = this.#options.participant.sessions.get(this.#episode);
    if (session === undefined) throw new HoldpointError("stale_attempt", "the session is over");
    return session.state;
  }
}

const unmarked = "it was said that the attempt is over (stale_attempt), and control does not say so";

/** The steps as `run` has them: they are work of ours. */
function forAuthor({ seed, invokeAgent, closeAgent, verify, ...rest }: UntaskedRun, signal: AbortSignal): UntaskedRun {
  return {
    ...rest,
    signal,
    seed: (seeds) => ours(() => seed(seeds)),
    invokeAgent: () => ours(invokeAgent),
    closeAgent: () => ours(closeAgent),
    verify: () => ours(verify),
  };
}

function tooLate(): HoldpointError {
  const words = `no answer within ${closeMs} ms; it is asked on for ${closeInAllMs} ms, or until the attempt is retired`;
  return new HoldpointError("deadline_exceeded", words);
}
