/**
 * The seed of a session: sets it up once, and answers every repetition from what there is.
 *
 * A seed that fails leaves nothing behind: no session, nothing that a prepare waits for, and its external state is freed.
 */
import { HoldpointError } from "@holdpoint/errors";
import type { Content, Episode, Json, SeedReply, SeedRequest } from "@holdpoint/schemas";
import type { Session } from "@holdpoint/session";
import { freed, hooked } from "./author-hook.ts";
import { atBench, type Desk } from "./desk.ts";
import { canonicalJson, refuseBeside } from "../live-sessions.ts";
import type { ResourcesSession } from "./resources-session.ts";

interface Named {
  readonly sessionId: string;
  readonly seed: Content;
}

interface Order extends Named {
  readonly episode: Episode;
  readonly value: unknown;
}

export class Seeding {
  readonly #desk: Desk;
  /** The attempt of each rollout that is being set up. */
  readonly #setUps = new Map<string, Order>();

  constructor(desk: Desk) {
    this.#desk = desk;
  }

  /**
   * Answers a seed: sets the session up, or, where there is one of the same seed, claims it as it is. Each answer has fresh access.
   *
   * @throws HoldpointError `invalid_request` for a seed that the definition does not take or throws on, `session_conflict` where the session has
   *   another one or another attempt of the rollout is live, `stale_attempt` where it was retired meanwhile
   */
  async seed({ rollout, attempt }: Episode, { sessionId, seed }: SeedRequest): Promise<SeedReply> {
    const { participant, resources, grants } = this.#desk;
    const episode = { rollout, attempt };
    const content = await participant.contents.write(canonicalJson(seed));
    const seeded = async (signal: AbortSignal): Promise<string | null> => {
      const known = participant.sessions.get(episode);
      if (known !== undefined) return this.#again(known, { sessionId, seed: content });
      this.#refuseBeside(episode);
      return this.#setUp({ episode, sessionId, seed: content, value: seed }, signal);
    };
    return atBench(this.#desk, episode, async (bench) => {
      const restart = await bench.run(seeded);
      const access = await grants?.issue(episode);
      return { terms: resources.terms, restart, ...(access !== undefined && { access }) };
    });
  }

  #refuseBeside(episode: Episode): void {
    refuseBeside(this.#desk.participant, episode);
    const other = this.#setUps.get(episode.rollout);
    if (other === undefined) return;
    const { rollout, attempt } = other.episode;
    throw new HoldpointError("session_conflict", `attempt ${attempt} of ${rollout} is being seeded: retire it first`, {
      details: { rollout, attempt },
    });
  }

  async #setUp(order: Order, signal: AbortSignal): Promise<null> {
    const { rollout } = order.episode;
    this.#setUps.set(rollout, order);
    try {
      await this.#record(order, await this.#built(order, signal));
    } finally {
      this.#setUps.delete(rollout);
    }
    return null;
  }

  async #built(order: Order, signal: AbortSignal): Promise<Json> {
    const { resources } = this.#desk;
    const { episode, sessionId, value } = order;
    try {
      const opening = { name: "the seed's schema or state.open", code: "invalid_request", signal, episode } as const;
      const state = await hooked(this.#desk, opening, () => resources.open(value));
      await hooked(this.#desk, { ...opening, name: "external.open" }, async (over) =>
        resources.external?.open({ ...episode, sessionId }, over),
      );
      return state;
    } catch (error) {
      await this.#free(order);
      throw error;
    }
  }

  async #record(order: Order, state: Json): Promise<void> {
    const { episode, sessionId, seed } = order;
    const data = { ...episode, sessionId, seed, sandbox: null, state };
    try {
      await this.#desk.participant.record({ type: "session.seeded", data });
    } catch (error) {
      // Where the broker did not say whether it stored the event, there may be a session; if not, a release finds what is left.
      if (!HoldpointError.is(error, "unavailable")) await this.#free(order);
      throw error;
    }
  }

  /** Why the seed failed is told, whether or not what it built can be freed. */
  async #free({ episode, sessionId }: Order): Promise<void> {
    const session = { ...episode, sessionId };
    await freed(this.#desk, session, `what the seed of ${episode.rollout} built was not freed`);
  }

  /** Runs no setup; a restored session is claimed by it. @returns why it is a restart */
  async #again(session: Session<ResourcesSession>, { sessionId, seed }: Named): Promise<string | null> {
    const { rollout, attempt, state, claimed } = session;
    if (state.sessionId !== sessionId || state.seed.digest !== seed.digest) {
      throw new HoldpointError(
        "session_conflict",
        `${rollout} was seeded with another seed: seed it with the same one`,
        {
          details: { rollout, attempt, sessionId: state.sessionId },
        },
      );
    }
    if (!claimed) {
      const data = { rollout, attempt, sessionId, seed: state.seed, sandbox: null };
      await this.#desk.participant.record({ type: "session.seeded", data });
    }
    return state.lost;
  }
}
