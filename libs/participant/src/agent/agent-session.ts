/** What an author's function is given of its session. */
import type { Access, Episode, Json } from "@holdpoint/schemas";
import { ours } from "../author-code.ts";
import type { ActivationContext } from "./activation.ts";
import type { ChatRequest, ModelMessage } from "./chat.ts";
import type { Slot } from "./slot-keeper.ts";

/** A session that was seeded, before anything runs in it. */
export interface SeededSession<Seed> {
  readonly episode: Episode;
  /** The same for every attempt. */
  readonly sessionId: string;
  readonly seed: Seed;
  /** How it reaches its tools, where the resources server grants that. A secret: it is kept in memory alone. */
  readonly access: Access | undefined;
}

/** A restored session that a replacement attempt has seeded. */
export interface ReboundSession<Seed> extends SeededSession<Seed> {
  /** With what the attempt before was seeded. */
  readonly previousSeed: Seed;
}

/**
 * What each step gives is in the log. An activation that runs again, after a crash or a restore, gets from the same steps what they
 * gave before, without their being done again; so it has to take the same steps. What it needs of clocks or chance it takes from its
 * seed, its model or its tools.
 *
 * Steps are taken one after the other. One that fails ends the activation.
 */
export interface AgentSession<Seed> extends SeededSession<Seed> {
  readonly policyVersion: number;
  /** What the boundary gave from which it goes on; undefined: it runs from its start. */
  readonly continuation: Json | undefined;
  /** Aborted when the session is retired or closed: then every step throws its reason. */
  readonly signal: AbortSignal;
  /**
   * Asks the policy model in the next turn. A boundary is before it: while a checkpoint is open it waits.
   *
   * @throws HoldpointError `invalid_checkpoint_state` where the log has another request in this turn
   */
  model(request: ChatRequest): Promise<ModelMessage>;
  /**
   * Calls a tool of the episode's resources server.
   *
   * @param input its arguments as JSON text, as the model wrote them
   * @throws HoldpointError `invalid_checkpoint_state` where the log has another step here
   */
  tool(name: string, input: string): Promise<string>;
  /**
   * From here the session can be continued with what `evaluate` gives. It is called when a checkpoint is taken and not before, at most once
   * for each: what it gives has to be as it is now. While a checkpoint is open the session waits here.
   */
  boundary(evaluate: () => Json | Promise<Json>): Promise<void>;
  /**
   * A slot of the process, in the order in which they were asked for: `await using slot = await session.slot()`. Given back at the
   * latest when the activation is over.
   */
  slot(): Promise<Slot>;
  /** A checkpoint is open, or the session is retired or closed: come to a boundary. Never for a session that restarts. */
  readonly parkRequested: boolean;
  /** Resolves when that is so. Anew after each time: take it again. */
  readonly parkSignal: Promise<void>;
  /** Access anew: before it expires. */
  renewAccess(): Promise<Access>;
}

export function agentSession<Seed>(context: ActivationContext, seed: Seed): AgentSession<Seed> {
  const { episode, state, policyVersion, continuation, signal, work, park, access, renewAccess } = context;
  return {
    episode,
    sessionId: state.sessionId,
    seed,
    policyVersion,
    continuation,
    signal,
    get access() {
      return access();
    },
    get parkRequested() {
      return park.isRaised;
    },
    get parkSignal() {
      return park.raised;
    },
    model: (request) => ours(() => work.model(request)),
    tool: (name, input) => ours(() => work.tool(name, input)),
    boundary: (evaluate) => ours(() => work.boundary(evaluate)),
    slot: () => ours(() => work.slot()),
    renewAccess: () => ours(renewAccess),
  };
}
