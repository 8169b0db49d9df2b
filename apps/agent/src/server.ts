/** What the agent answers and obeys: seeds, activations, the end of a session, and the control plane's asks. */
import { HoldpointError } from "@holdpoint/errors";
import { type AnyMethod, method } from "@holdpoint/participant";
import { ActivateRequest, type Blocker, CloseRequest, type Episode, SeedRequest } from "@holdpoint/schemas";
import { keyOf } from "@holdpoint/session";
import type { Logger } from "@holdpoint/telemetry";
import { Activation } from "./activation.ts";
import type { Agent } from "./agent.ts";
import { AgentSeed } from "./prompt.ts";

/** How long an activation is waited for before the caller is told to ask again. */
const pollMs = 5_000;

export class AgentServer {
  readonly #agent: Agent;
  readonly #logger: Logger;
  readonly #resources: string;
  readonly #activations = new Map<string, Activation>();

  constructor(agent: Agent, resources: string, logger: Logger) {
    this.#agent = agent;
    this.#resources = resources;
    this.#logger = logger;
  }

  /** Serves, and goes on with every activation that the log shows: nobody may be there to ask for it (L9). */
  async start(): Promise<void> {
    await this.#agent.serve({
      methods: this.#methods(),
      hooks: {
        blockers: () => this.#awaiting(),
        retire: async (marks) => {
          await Promise.all(this.#upTo(marks).map((activation) => activation.cancel()));
          return [];
        },
      },
    });
    for (const { rollout, attempt, claimed, state } of this.#agent.sessions.all()) {
      const { policyVersion, output } = state;
      if (claimed && policyVersion !== null && output === null) this.#activation({ rollout, attempt }, policyVersion);
    }
  }

  #methods(): Readonly<Record<string, AnyMethod>> {
    return {
      seed: method({
        body: SeedRequest,
        whileClosed: "held",
        seeds: true,
        blocks: "seed in flight",
        handle: (episode, body) => this.#seed(episode, body),
      }),
      activate: method({
        body: ActivateRequest,
        whileClosed: "through",
        handle: (episode, { policyVersion }) => this.#activate(episode, policyVersion),
      }),
      close: method({ body: CloseRequest, whileClosed: "through", handle: (episode) => this.#close(episode) }),
    };
  }

  /** A seed that is repeated is answered as before; a restored session's claims it; another seed is refused. */
  async #seed(episode: Episode, { sessionId, seed }: SeedRequest): Promise<object> {
    const parsed = AgentSeed.safeParse(seed);
    if (!parsed.success) {
      throw new HoldpointError("invalid_request", "expected a seed of { task, seed } as the repair workload has it");
    }
    const content = await this.#agent.contents.write(JSON.stringify(seed));
    const known = this.#agent.sessions.get(episode);
    if (known !== undefined && known.state.seed.digest !== content.digest) {
      throw new HoldpointError("session_conflict", `${episode.rollout} was seeded with something else`);
    }
    if (known?.claimed !== true) {
      await this.#agent.record({ type: "session.seeded", data: { ...episode, sessionId, seed: content } });
    }
    return { terms: { rebinds: true }, restart: null };
  }

  /** @throws HoldpointError what the activation met, such as a sandbox that is lost: the caller decides what becomes of it */
  async #activate(episode: Episode, policyVersion: number): Promise<object> {
    const activation = this.#activation(episode, policyVersion);
    await Promise.race([activation.done, this.#patience()]);
    if (activation.failure !== undefined) throw activation.failure;
    const output = this.#agent.sessions.get(episode)?.state.output;
    return output === null || output === undefined ? { status: "running" } : { status: "ended", output };
  }

  /** The activation that runs, or a new one that goes on from where the conversation stands. */
  #activation(episode: Episode, policyVersion: number): Activation {
    const key = keyOf(episode);
    const running = this.#activations.get(key);
    if (running !== undefined) return running;
    const terms = { policyVersion, resources: this.#resources };
    const activation = new Activation(this.#agent, episode, terms, (error) => {
      this.#logger.error({ err: error, ...episode }, "an activation stopped");
    });
    this.#activations.set(key, activation);
    void this.#forget(key, activation);
    return activation;
  }

  async #forget(key: string, activation: Activation): Promise<void> {
    await activation.done;
    this.#activations.delete(key);
    this.#agent.changed();
  }

  async #close(episode: Episode): Promise<object> {
    await this.#activations.get(keyOf(episode))?.cancel();
    if (this.#agent.sessions.get(episode) !== undefined) {
      await this.#agent.record({ type: "session.closed", data: episode });
    }
    return {};
  }

  /**
   * Sessions that wait for the model: until it answers or refuses they are not at a boundary. Also those whose call a process
   * before this one has asked, and whose activation has not gone on yet.
   */
  #awaiting(): readonly Blocker[] {
    return this.#agent.sessions
      .all()
      .filter(({ status, state, ...episode }) => {
        const isWaiting = state.awaited !== null || this.#activations.has(keyOf(episode));
        return status.work === "at_boundary" && !status.restart && isWaiting;
      })
      .map(({ rollout, attempt }) => {
        return { rollout, attempt, reason: "awaits the model", sinceMs: this.#agent.clock.nowMs() };
      });
  }

  #upTo(marks: readonly Episode[]): readonly Activation[] {
    const highest = new Map(marks.map(({ rollout, attempt }) => [rollout, attempt]));
    return [...this.#activations.values()].filter(
      ({ episode }) => episode.attempt <= (highest.get(episode.rollout) ?? -1),
    );
  }

  #patience(): Promise<void> {
    return new Promise((resolve) => {
      setTimeout(resolve, pollMs).unref();
    });
  }
}
