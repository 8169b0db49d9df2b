/** What an agent answers and obeys: seeds, activations, the end of a session, and the control plane's asks. */
import { HoldpointError } from "@holdpoint/errors";
import {
  ActivateRequest,
  type Blocker,
  CloseRequest,
  type Content,
  type Episode,
  SeedRequest,
} from "@holdpoint/schemas";
import { keyOf, type Session } from "@holdpoint/session";
import { type AnyMethod, method } from "../rpc-server.ts";
import { AccessBook } from "./access-book.ts";
import { Activation, type ActivationContext } from "./activation.ts";
import { type AgentDefinition, seedFrom } from "./agent-definition.ts";
import type { AgentLogEvent, AgentParticipant, AgentState } from "./agent-state.ts";
import { exportBoundaries } from "./exporting.ts";
import { Seeding } from "./seeding.ts";
import { Slots } from "./slots.ts";
import { untilAborted } from "../until-aborted.ts";

export interface AgentServing {
  /** The instance of the resources server whose tools are called. Default: `main`. */
  readonly resources?: string;
  /** Milliseconds for which an activation is waited for before the caller is told to ask again. Default: 5,000. */
  readonly pollMs?: number;
  /** Milliseconds for which a close waits until the session's work has stopped. Default: 10,000. */
  readonly graceMs?: number;
}

export interface AgentServerOptions extends AgentServing {
  readonly definition: AgentDefinition;
  readonly agent: AgentParticipant;
}

export class AgentServer {
  readonly #definition: AgentDefinition;
  readonly #agent: AgentParticipant;
  readonly #resources: string;
  readonly #pollMs: number;
  readonly #graceMs: number;
  readonly #slots: Slots;
  readonly #access: AccessBook;
  readonly #seeding: Seeding;
  readonly #activations = new Map<string, Activation>();

  constructor({ definition, agent, resources = "main", pollMs = 5_000, graceMs = 10_000 }: AgentServerOptions) {
    this.#definition = definition;
    this.#agent = agent;
    this.#resources = resources;
    this.#pollMs = pollMs;
    this.#graceMs = graceMs;
    this.#slots = new Slots(definition.slots);
    this.#access = new AccessBook(agent.calls, resources);
    this.#seeding = new Seeding(definition, agent, this.#access);
  }

  /** Serves, and goes on with every activation that the log shows: nobody may be there to ask for it (L9). */
  async start(): Promise<void> {
    await this.#agent.serve({
      methods: this.#methods(),
      hooks: {
        blockers: () => this.#awaiting(),
        capture: (sessions, checkpointId, signal) => this.#export(sessions, checkpointId, signal),
        restore: async (sessions) => sessions.filter(({ state }) => isLost(state)).map((session) => lost(session)),
        retire: (marks, signal) => this.#retire(marks, signal),
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
        handle: (episode, body) => this.#seeding.seed(episode, body),
      }),
      activate: method({
        body: ActivateRequest,
        whileClosed: "through",
        handle: (episode, { policyVersion }) => this.#activate(episode, policyVersion),
      }),
      close: method({
        body: CloseRequest,
        whileClosed: "through",
        ends: true,
        handle: (episode) => this.#close(episode),
      }),
    };
  }

  /**
   * One that has ended is not begun again: whoever asks again is told what it gave.
   *
   * @throws HoldpointError what the activation met, such as a sandbox that is lost: the caller decides what becomes of it
   */
  async #activate(episode: Episode, policyVersion: number): Promise<object> {
    const before = this.#outputOf(episode);
    if (before !== null) return { status: "ended", output: before };
    const activation = this.#activation(episode, policyVersion);
    await activation.isOverWithin(this.#pollMs);
    if (activation.failure !== undefined) throw activation.failure;
    const output = this.#outputOf(episode);
    return output === null ? { status: "running" } : { status: "ended", output };
  }

  #outputOf(episode: Episode): Content | null {
    return this.#agent.sessions.get(episode)?.state.output ?? null;
  }

  /** The activation that runs, or a new one that goes on from where the session stands. */
  #activation(episode: Episode, policyVersion: number): Activation {
    const key = keyOf(episode);
    const running = this.#activations.get(key);
    if (running !== undefined) return running;
    const activation = new Activation(
      {
        agent: this.#agent,
        name: this.#definition.name,
        isOpaque: this.#definition.isOpaque,
        resources: this.#resources,
        graceMs: this.#graceMs,
        slots: this.#slots,
        access: this.#access,
        perform: (context) => this.#perform(context),
        failed: (error) => {
          const about = {
            role: "agent",
            hook: "activate",
            rollout: episode.rollout,
            attempt: episode.attempt,
          } as const;
          this.#agent.options.trouble(`the activation of ${key} stopped`, error, about);
        },
      },
      episode,
      policyVersion,
    );
    this.#activations.set(key, activation);
    void this.#forget(key, activation);
    return activation;
  }

  async #perform(context: ActivationContext): Promise<unknown> {
    const seed = seedFrom(await this.#agent.contents.read(context.state.seed));
    const bound = await this.#definition.bind(seed);
    return bound.activate(context);
  }

  async #forget(key: string, activation: Activation): Promise<void> {
    await activation.done;
    this.#activations.delete(key);
    this.#agent.changed();
  }

  /** Also of a session that is still being seeded: the episode has ended, and no seed makes one any more. */
  async #close({ rollout, attempt }: Episode): Promise<object> {
    const episode = { rollout, attempt };
    await this.#stop(episode);
    this.#access.drop(episode);
    if (!this.#agent.sessions.hasEnded(episode)) await this.#agent.record({ type: "session.closed", data: episode });
    return {};
  }

  /** What an author's hook does in spite of its signal keeps nobody waiting for long: its steps throw from here on. */
  async #stop(episode: Episode): Promise<void> {
    const activation = this.#activations.get(keyOf(episode));
    activation?.stop();
    const seeded = this.#seeding.stop(episode, this.#graceMs);
    const hasStopped = activation === undefined || (await activation.isOverWithin(this.#graceMs));
    if ((await seeded) && hasStopped) return;
    activation?.abandon();
    const { name } = this.#definition;
    const what = `agent ${name} did not stop its work on ${keyOf(episode)} within ${this.#graceMs} ms of its close`;
    this.#agent.options.trouble(what, new HoldpointError("deadline_exceeded", "its hooks have to obey their signal"));
  }

  async #export(
    sessions: readonly Session<AgentState>[],
    checkpointId: string,
    signal: AbortSignal,
  ): Promise<readonly AgentLogEvent[]> {
    if (this.#agent.spec.mode !== "exported") return [];
    const working = sessions.flatMap((session) => this.#activations.get(keyOf(session)) ?? []);
    const { contents, options } = this.#agent;
    return exportBoundaries(working, { checkpointId, signal, contents, trouble: options.trouble });
  }

  async #retire(marks: readonly Episode[], signal: AbortSignal): Promise<readonly AgentLogEvent[]> {
    const highest = new Map(marks.map(({ rollout, attempt }) => [rollout, attempt]));
    const isMarked = ({ rollout, attempt }: Episode) => attempt <= (highest.get(rollout) ?? -1);
    const activations = [...this.#activations.values()].filter(({ episode }) => isMarked(episode));
    await untilAborted(Promise.all(activations.map((activation) => activation.cancel())), signal);
    for (const session of this.#agent.sessions.live()) if (isMarked(session)) this.#access.drop(session);
    return [];
  }

  /**
   * Sessions that wait for the model: until it answers or refuses they are not at a boundary. Also those whose call a process
   * before this one has asked, and whose activation has not gone on yet; and those whose activation is about to begin.
   */
  #awaiting(): readonly Blocker[] {
    return this.#agent.sessions
      .all()
      .filter(({ status, state, ...episode }) => {
        const isWaiting = state.awaited !== null || this.#activations.has(keyOf(episode));
        const isBetween = status.work === "at_boundary" || status.work === "idle";
        return isBetween && !status.restart && isWaiting;
      })
      .map(({ rollout, attempt, status }) => {
        const reason = status.work === "idle" ? "an activation begins" : "awaits the model";
        return { rollout, attempt, reason, sinceMs: this.#agent.clock.nowMs() };
      });
  }
}

/** A harness that was launched for an attempt before, and of which nothing was exported, cannot be gone on with. */
function isLost({ harness, continuation, output }: AgentState): boolean {
  return harness !== null && continuation === null && output === null;
}

function lost({ rollout, attempt }: Episode): AgentLogEvent {
  const why = "its harness is gone, and its state was not exported";
  return { type: "session.restart_marked", data: { rollout, attempt, why } };
}
