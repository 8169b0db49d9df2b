/**
 * The seeds of an agent's sessions.
 *
 * 1. A seed that is repeated is answered as before. A restored session's claims it, and binds it anew where the agent can do that.
 * 2. One attempt of a rollout is live at a time; a restored one that nobody has claimed is not passed over.
 * 3. Seeds of one session are obeyed one after the other.
 * 4. One whose episode has ended makes no session, also where it was under way by then.
 */
import { HoldpointError } from "@holdpoint/errors";
import type { Content, Episode, SeedReply, SeedRequest } from "@holdpoint/schemas";
import { keyOf, type Session } from "@holdpoint/session";
import { authored } from "../author-code.ts";
import { refuseBeside } from "../live-sessions.ts";
import { untilAborted } from "../until-aborted.ts";
import type { AccessBook } from "./access-book.ts";
import { type AgentDefinition, type BoundAgent, seedFrom, type UnseededSession } from "./agent-definition.ts";
import type { AgentLogEvent, AgentParticipant, AgentState } from "./agent-state.ts";

export class Seeding {
  readonly #definition: AgentDefinition;
  readonly #agent: AgentParticipant;
  readonly #access: AccessBook;
  readonly #under = new Map<string, Promise<unknown>>();
  /** Whose episode has ended while a seed is under way. */
  readonly #stopped = new Set<string>();

  constructor(definition: AgentDefinition, agent: AgentParticipant, access: AccessBook) {
    this.#definition = definition;
    this.#agent = agent;
    this.#access = access;
  }

  /**
   * @throws HoldpointError `invalid_request` where it is no seed of this agent; `session_conflict` where the session was seeded with
   *   something else, or another attempt is live; `stale_attempt` where the episode has ended; what the definition's hooks throw
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
      if (this.#under.get(key) === settled) this.#forget(key);
    }
  }

  /**
   * No seed that is under way makes the session, or binds it, from here on. Waits until none is.
   *
   * @returns false where it still is after `patienceMs`
   */
  async stop(episode: Episode, patienceMs: number): Promise<boolean> {
    const key = keyOf(episode);
    const under = this.#under.get(key);
    if (under === undefined) return true;
    this.#stopped.add(key);
    const patience = AbortSignal.timeout(patienceMs);
    return untilAborted(under, patience).then(
      () => true,
      () => false,
    );
  }

  #forget(key: string): void {
    this.#under.delete(key);
    this.#stopped.delete(key);
  }

  async #seed(episode: Episode, { sessionId, seed, access }: SeedRequest): Promise<SeedReply> {
    this.#refuseEnded(episode);
    const bound = await this.#authored("seed", episode, () => this.#definition.bind(seed));
    const content = await this.#agent.contents.write(JSON.stringify(seed));
    const known = this.#agent.sessions.get(episode);
    if (known === undefined) refuseBeside(this.#agent, episode);
    else this.#checkSame(known, content);
    if (known?.claimed !== true) {
      const session = { episode, sessionId, access };
      if (known !== undefined) await this.#rebind(known, bound, session);
      this.#refuseEnded(episode);
      await this.#agent.record(...(await this.#events(session, content, bound)));
    }
    this.#access.keep(episode, access);
    return { terms: { rebinds: this.#definition.rebinds }, restart: this.#restart(episode) };
  }

  #refuseEnded(episode: Episode): void {
    const { sessions } = this.#agent;
    const isOver = sessions.hasEnded(episode) && sessions.get(episode) === undefined;
    if (!isOver && !this.#stopped.has(keyOf(episode))) return;
    const { rollout, attempt } = episode;
    throw new HoldpointError("stale_attempt", `attempt ${attempt} of ${rollout} has ended: nothing seeds it any more`, {
      details: { rollout, attempt },
    });
  }

  /** The mark is in the same message: nothing can export the session before. */
  async #events(
    { episode, sessionId, access }: UnseededSession,
    seed: Content,
    bound: BoundAgent,
  ): Promise<AgentLogEvent[]> {
    const granted = access === undefined ? {} : { granted: true };
    const seeded = { type: "session.seeded" as const, data: { ...episode, sessionId, seed, ...granted } };
    const session = { episode, sessionId, access };
    const why = await this.#authored("capturable", episode, async () => bound.restart(session, this.#agent.spec.mode));
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
    const previous = seedFrom(await this.#agent.contents.read(state.seed));
    await this.#authored("rebind", session.episode, () => bound.rebind(session, previous));
  }

  /** What fails here may go well when it is asked for again. */
  #authored<Result>(hook: string, { rollout, attempt }: Episode, call: () => Promise<Result>): Promise<Result> {
    const { trouble } = this.#agent.options;
    const about = { role: "agent", hook, rollout, attempt } as const;
    const title = `${hook} of ${this.#definition.name}`;
    return authored({ title, about, code: "unavailable", trouble }, call);
  }

  #restart(episode: Episode): string | null {
    if (this.#agent.spec.mode === "restart_only") return `agent ${this.#definition.name} is restart_only`;
    return this.#agent.sessions.get(episode)?.state.restart ?? null;
  }
}
