/**
 * The seeds of an agent's sessions.
 *
 * 1. A seed that is repeated is answered as before. A restored session's claims it, and binds it anew where the agent can do that.
 * 2. One attempt of a rollout is live at a time; a restored one that nobody has claimed is not passed over.
 * 3. Seeds of one session are obeyed one after the other.
 */
import { HoldpointError } from "@holdpoint/errors";
import type { Content, Episode, SeedReply, SeedRequest } from "@holdpoint/schemas";
import { keyOf, type Session } from "@holdpoint/session";
import type { AccessBook } from "./access-book.ts";
import { type AgentDefinition, type BoundAgent, seedFrom, type UnseededSession } from "./agent-definition.ts";
import type { AgentLogEvent, AgentParticipant, AgentState } from "./agent-state.ts";

export class Seeding {
  readonly #definition: AgentDefinition;
  readonly #agent: AgentParticipant;
  readonly #access: AccessBook;
  readonly #under = new Map<string, Promise<unknown>>();

  constructor(definition: AgentDefinition, agent: AgentParticipant, access: AccessBook) {
    this.#definition = definition;
    this.#agent = agent;
    this.#access = access;
  }

  /**
   * @throws HoldpointError `invalid_request` where it is no seed of this agent; `session_conflict` where the session was seeded with
   *   something else, or another attempt is live; what the definition's hooks throw
   */
  async seed(episode: Episode, request: SeedRequest): Promise<SeedReply> {
    const key = keyOf(episode);
    const before = this.#under.get(key) ?? Promise.resolve();
    const mine = before.then(() => this.#seed(episode, request));
    const settled = mine.catch(() => {});
    this.#under.set(key, settled);
    try {
      return await mine;
    } finally {
      if (this.#under.get(key) === settled) this.#under.delete(key);
    }
  }

  async #seed(episode: Episode, { sessionId, seed, access }: SeedRequest): Promise<SeedReply> {
    const bound = await this.#definition.bind(seed);
    const content = await this.#agent.contents.write(JSON.stringify(seed));
    const known = this.#agent.sessions.get(episode);
    if (known === undefined) refuseBeside(this.#agent, episode);
    else this.#checkSame(known, content);
    if (known?.claimed !== true) {
      const session = { episode, sessionId, access };
      if (known !== undefined) await this.#rebind(known, bound, session);
      await this.#agent.record(...this.#events(session, content, bound));
    }
    this.#access.keep(episode, access);
    return { terms: { rebinds: this.#definition.rebinds }, restart: this.#restart(episode) };
  }

  /** The mark is in the same message: nothing can export the session before. */
  #events({ episode, sessionId, access }: UnseededSession, seed: Content, bound: BoundAgent): AgentLogEvent[] {
    const granted = access === undefined ? {} : { granted: true };
    const seeded = { type: "session.seeded" as const, data: { ...episode, sessionId, seed, ...granted } };
    const why = bound.restart({ episode, sessionId, access });
    return why === null ? [seeded] : [seeded, { type: "session.restart_marked", data: { ...episode, why } }];
  }

  #checkSame({ rollout, attempt, claimed, state }: Session<AgentState>, seed: Content): void {
    const mayDiffer = this.#definition.rebinds && !claimed;
    if (mayDiffer || state.seed.digest === seed.digest) return;
    const why = this.#definition.rebinds ? "" : `, and agent ${this.#definition.name} has no rebind hook`;
    throw new HoldpointError(
      "session_conflict",
      `${rollout} was seeded with something else${why}: seed it with the same, or retire it first`,
      { details: { rollout, attempt } },
    );
  }

  async #rebind({ state }: Session<AgentState>, bound: BoundAgent, session: UnseededSession): Promise<void> {
    if (!this.#definition.rebinds) return;
    await bound.rebind(session, seedFrom(await this.#agent.contents.read(state.seed)));
  }

  #restart(episode: Episode): string | null {
    if (this.#agent.spec.mode === "restart_only") return `agent ${this.#definition.name} is restart_only`;
    return this.#agent.sessions.get(episode)?.state.restart ?? null;
  }
}

function refuseBeside(agent: AgentParticipant, { rollout, attempt }: Episode): void {
  for (const other of agent.sessions.live()) {
    if (other.rollout !== rollout) continue;
    if (other.attempt > attempt) {
      throw new HoldpointError("stale_attempt", `${rollout} is already at attempt ${other.attempt}`);
    }
    throw new HoldpointError(
      "session_conflict",
      `attempt ${other.attempt} of ${rollout} is live: seed that attempt, or retire it first`,
      { details: { rollout, attempt: other.attempt } },
    );
  }
}
