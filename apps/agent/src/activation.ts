/**
 * One activation: the loop of model calls and tool calls, from wherever the log says the conversation stands.
 *
 * A boundary is before each model call. What a call gives is in the log before anything is made of it (L2). Calls are named by
 * (rollout, turn, index), so asking again after a crash, here or there, gets the answer of the first time (L3).
 */
import { HoldpointError } from "@holdpoint/errors";
import { type Episode, ToolReply } from "@holdpoint/schemas";
import { sha256 } from "@holdpoint/participant";
import type { Agent } from "./agent.ts";
import type { Conversation, Turn } from "./conversation.ts";
import { askModel, type ModelReply } from "./model-client.ts";
import { parseResponse, requestBody } from "./prompt.ts";

export interface Terms {
  readonly policyVersion: number;
  /** The instance of the resources server that lends the sandbox. */
  readonly resources: string;
}

export class Activation {
  readonly episode: Episode;
  readonly done: Promise<void>;
  readonly #agent: Agent;
  readonly #terms: Terms;
  readonly #controller = new AbortController();
  #failure: Error | undefined;

  /** Starts at once, or goes on. `done` never rejects; `failed` is told why it stopped, unless it was cancelled or ended. */
  constructor(agent: Agent, { rollout, attempt }: Episode, terms: Terms, failed: (error: unknown) => void) {
    this.#agent = agent;
    this.episode = { rollout, attempt };
    this.#terms = terms;
    this.done = this.#run().catch((error: unknown) => {
      if (this.#signal.aborted) return;
      this.#failure = error instanceof Error ? error : new Error(String(error));
      failed(error);
    });
  }

  /** Why it stopped by itself before it ended: asking again meets the same. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  /** Stops it, and waits until it has stopped. */
  async cancel(): Promise<void> {
    this.#controller.abort(new HoldpointError("stale_attempt", "the activation was cancelled"));
    await this.done;
  }

  async #run(): Promise<void> {
    if (!this.#state.started) {
      const { policyVersion } = this.#terms;
      await this.#agent.record({ type: "activation.started", data: { ...this.episode, policyVersion } });
    }
    while (this.#state.output === null) await this.#step();
  }

  async #step(): Promise<void> {
    const { last } = this.#state;
    if (last === null) return this.#call();
    const text = await this.#agent.contents.read(last.response);
    const calls = parseResponse(text).tool_calls ?? [];
    const next = calls[last.resultCount];
    if (next !== undefined) return this.#tool(last, next.function);
    if (calls.length > 0) return this.#call();
    const output = await this.#agent.contents.write(text);
    return this.#agent.record({ type: "activation.ended", data: { ...this.episode, output } });
  }

  async #tool(
    turn: Turn,
    { name, arguments: input }: { readonly name: string; readonly arguments: string },
  ): Promise<void> {
    const index = turn.resultCount;
    const { result } = await this.#agent.calls.call({
      episode: this.episode,
      role: "resources",
      instance: this.#terms.resources,
      method: "tool",
      body: { turn: turn.turn, index, name, arguments: input },
      reply: ToolReply,
      signal: this.#signal,
    });
    await this.#agent.record({ type: "tool.returned", data: { ...this.episode, turn: turn.turn, index, result } });
  }

  async #call(): Promise<void> {
    const turn = this.#state.calls.received;
    const named = { rollout: this.episode.rollout, policyVersion: this.#terms.policyVersion };
    const body = await requestBody(this.#state, named, (content) => this.#agent.contents.read(content));
    // A process that died has asked: whether it was answered the model alone knows, so it is asked before anything parks (L5).
    let isAsked = this.#state.awaited?.request === sha256(body);
    for (;;) {
      if (!isAsked) await this.#agent.boundary(this.episode, this.#signal);
      isAsked = false;
      await this.#request(turn, sha256(body));
      const reply = await this.#ask(turn, body);
      if (reply.status === "parked") await this.#untilClosed();
      else return this.#received(turn, reply.message);
    }
  }

  /** Records that the call is asked, once: asked again it is the same. */
  async #request(turn: number, request: string): Promise<void> {
    if (this.#state.awaited?.request === request) return;
    await this.#agent.record({ type: "call.requested", data: { ...this.episode, turn, request } });
  }

  #ask(turn: number, body: string): Promise<ModelReply> {
    const { admission, directory, sessions } = this.#agent;
    return askModel({
      episode: this.episode,
      turn,
      body,
      signal: this.#signal,
      isRestart: () => sessions.get(this.episode)?.status.restart === true || admission.isExcluded(this.episode),
      endpoint: () => directory.of("model")[0]?.endpoint ?? undefined,
    });
  }

  /** The model closes before the agent is told: waits until it is, or until the model answers again. */
  async #untilClosed(): Promise<void> {
    const patience = AbortSignal.any([this.#signal, AbortSignal.timeout(retryMs)]);
    await this.#agent.admission.gateLatch.until(() => this.#agent.admission.isClosed, patience).catch(() => {});
    this.#signal.throwIfAborted();
  }

  async #received(turn: number, message: string): Promise<void> {
    const response = await this.#agent.contents.write(message);
    await this.#agent.record({ type: "call.received", data: { ...this.episode, turn, response } });
  }

  get #signal(): AbortSignal {
    return this.#controller.signal;
  }

  get #state(): Conversation {
    const session = this.#agent.sessions.get(this.episode);
    if (session === undefined) throw new HoldpointError("stale_attempt", "the session is over");
    return session.state;
  }
}

/** A model that refused is asked again after this, where no checkpoint was seen to open. */
const retryMs = 250;
