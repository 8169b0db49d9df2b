/**
 * What an activation does: each step is answered from the log where the log has it, and taken where it has not.
 *
 * 1. What a step gives is in the log before anything is made of it (L2). Steps are named by (rollout, turn, index), so asking again
 *    after a crash, here or there, gets the answer of the first time (L3).
 * 2. While the log has steps left nothing parks, nothing waits for a slot, and nothing is appended.
 * 3. In doubt is an activation whose process died while a step may have been under way: the other end may have done it. Until that is
 *    known it stands at no boundary (L5); so it waits for nothing that a checkpoint could hold up.
 * 4. Steps are taken one after the other, in the order in which they were asked for. One that has failed ends the activation, whatever
 *    its author makes of that: what is not in the log cannot be answered from it.
 */
import { HoldpointError } from "@holdpoint/errors";
import { type Content, type Episode, type Json, ToolReply } from "@holdpoint/schemas";
import { sha256 } from "../hash.ts";
import { isCapturable } from "../preparing.ts";
import type { AgentParticipant, AgentState } from "./agent-state.ts";
import { type ChatRequest, type ModelMessage, readMessage } from "./chat.ts";
import { checkBoundary, checkRequest, checkTool } from "./given.ts";
import { askModel, type ModelReply } from "./model-client.ts";
import { Replay, type ToolAsked } from "./replay.ts";
import { SlotKeeper, type Slot } from "./slot-keeper.ts";
import type { Slots } from "./slots.ts";
import { afterCall, afterTool, type Position, start, toolAt } from "./steps.ts";

export interface WorkOptions {
  readonly agent: AgentParticipant;
  readonly episode: Episode;
  /** The definition's, for messages. */
  readonly name: string;
  /** The instance of the resources server whose tools are called. */
  readonly resources: string;
  readonly slots: Slots;
  /** Aborted when the activation is cancelled or has ended. */
  readonly signal: AbortSignal;
  /** Where the session stands. */
  readonly from: AgentState;
  readonly isInDoubt: boolean;
}

/** From where the work can be continued, and with what. */
export interface Boundary extends Position {
  /** Whose function `evaluate` is, for messages. */
  readonly hook: BoundaryHook;
  readonly evaluate: () => Json | Promise<Json>;
  /** What it was exported as. */
  exported: Content | undefined;
}

export type BoundaryHook = "boundary" | "state";

export class Work {
  readonly #options: WorkOptions;
  readonly #replay: Replay;
  readonly #slots: SlotKeeper;
  #position: Position;
  #boundary: Boundary | undefined;
  #isInDoubt: boolean;
  #last: Promise<unknown> = Promise.resolve();
  #failure: { readonly error: unknown } | undefined;

  constructor(options: WorkOptions) {
    const { agent, episode, name, from, signal, slots } = options;
    this.#options = options;
    this.#replay = new Replay(name, episode, from);
    this.#position = from.continuation ?? start;
    this.#isInDoubt = options.isInDoubt;
    this.#slots = new SlotKeeper({ agent, episode, slots, signal });
  }

  /** Asks the policy model, in the next turn. A boundary is before it. */
  model(request: ChatRequest): Promise<ModelMessage> {
    const body = JSON.stringify(request); // as it is now
    return this.#inOrder(() => {
      checkRequest(this.#options.name, request);
      return this.#call(body);
    });
  }

  /** Calls a tool of the episode's resources server. `input`: JSON text, as the model wrote it. */
  tool(name: string, input: string): Promise<string> {
    return this.#inOrder(() => {
      checkTool(this.#options.name, name, input);
      return this.#use(name, input);
    });
  }

  /** From here the work can be continued with what `evaluate` gives. Parks while a checkpoint is open. */
  boundary(evaluate: () => Json | Promise<Json>, hook: BoundaryHook = "boundary"): Promise<void> {
    return this.#inOrder(async () => {
      checkBoundary(this.#options.name, evaluate);
      this.#boundary = { ...this.#position, hook, evaluate, exported: undefined };
      if (this.#replay.isOver && !this.#isInDoubt) await this.#park();
    });
  }

  /** Parks while a checkpoint is open. */
  stand(): Promise<void> {
    return this.#inOrder(async () => {
      if (this.#replay.isOver && !this.#isInDoubt) await this.#park();
    });
  }

  /** Returns with a slot of the process. */
  slot(): Promise<Slot> {
    return this.#inOrder(async () => {
      if (!this.#replay.isOver) return this.#slots.lend();
      return this.#slots.take({ isInDoubt: this.#isInDoubt });
    });
  }

  /** What was recorded last, unless the log has it by now. */
  get boundaryToExport(): Boundary | undefined {
    const { continuation } = this.#state;
    const isThere = continuation !== null && continuation.boundary.digest === this.#boundary?.exported?.digest;
    return isThere ? undefined : this.#boundary;
  }

  /**
   * The activation has returned.
   *
   * @throws HoldpointError `invalid_checkpoint_state` where its log has more steps than it took; what a step of it has failed with
   */
  end(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
    this.#replay.end();
  }

  /** Gives back what it holds. */
  close(): void {
    this.#slots.close();
  }

  #inOrder<T>(step: () => Promise<T>): Promise<T> {
    const { signal } = this.#options;
    const mine = this.#last.then(() => {
      signal.throwIfAborted();
      if (this.#failure !== undefined) throw this.#failure.error;
      return step();
    });
    this.#last = mine.catch((error: unknown) => {
      this.#failure ??= { error };
    });
    return mine;
  }

  async #call(body: string): Promise<ModelMessage> {
    const { turn } = this.#position;
    const request = sha256(body);
    const recorded = this.#replay.call(turn, request);
    const text = recorded === undefined ? await this.#ask(turn, body) : await this.#contents.read(recorded);
    const message = readMessage(text);
    this.#position = afterCall(this.#position);
    if (recorded !== undefined) await this.#caughtUp();
    return message;
  }

  async #ask(turn: number, body: string): Promise<string> {
    const request = sha256(body);
    const { awaited } = this.#state;
    if (awaited !== null) this.#replay.checkRequest(turn, request, awaited.request);
    // A process that died has asked: whether it was answered the model alone knows, so it is asked before anything parks (L5).
    let isAsked = awaited !== null;
    this.#isInDoubt = false;
    for (;;) {
      if (!isAsked) await this.#park();
      isAsked = false;
      const reply = await this.#once(turn, { body, request });
      if (reply.status === "parked") await this.#untilClosed();
      else return this.#received(turn, reply.message);
    }
  }

  /** Records that the call is asked, once: asked again it is the same. */
  async #once(turn: number, { body, request }: { readonly body: string; readonly request: string }) {
    const { agent, episode, signal } = this.#options;
    if (this.#state.awaited === null)
      await agent.record({ type: "call.requested", data: { ...episode, turn, request } });
    const { directory } = agent;
    const reply: ModelReply = await askModel({
      episode,
      turn,
      body,
      signal,
      isRestart: () => this.#isRestart,
      endpoint: () => directory.of("model")[0]?.endpoint ?? undefined,
    });
    return reply;
  }

  /** The model closes before the agent is told: waits until it is, or until the model answers again. */
  async #untilClosed(): Promise<void> {
    const { agent, signal } = this.#options;
    const patience = AbortSignal.any([signal, AbortSignal.timeout(retryMs)]);
    await agent.admission.gateLatch.until(() => agent.admission.isClosed, patience).catch(() => {});
    signal.throwIfAborted();
  }

  async #received(turn: number, text: string): Promise<string> {
    readMessage(text); // what is none is not recorded
    const { agent, episode } = this.#options;
    const response = await this.#contents.write(text);
    await agent.record({ type: "call.received", data: { ...episode, turn, response } });
    return text;
  }

  async #use(name: string, input: string): Promise<string> {
    const asked = { ...toolAt(this.#position), name, arguments: sha256(input) };
    const recorded = this.#replay.tool(asked);
    const result = recorded ?? (await this.#request(asked, input));
    const text = await this.#contents.read(result);
    this.#position = afterTool(this.#position);
    if (recorded !== undefined) await this.#caughtUp();
    return text;
  }

  async #request({ turn, index, name, arguments: digest }: ToolAsked, input: string): Promise<Content> {
    const { agent, episode, resources, signal } = this.#options;
    const { awaited } = this.#state;
    if (awaited !== null) throw this.#replay.diverged(`a call of tool ${name}`, `a model call of turn ${awaited.turn}`);
    const body = { turn, index, name, arguments: input, ...(this.#isRestart && { restart: true }) };
    const { result } = await agent.calls.call({
      episode,
      role: "resources",
      instance: resources,
      method: "tool",
      body,
      reply: ToolReply,
      signal,
    });
    await agent.record({ type: "tool.returned", data: { ...episode, turn, index, result, name, arguments: digest } });
    this.#isInDoubt = false;
    return result;
  }

  /** The log may have no more steps: what was lent has to be had from here on. */
  async #caughtUp(): Promise<void> {
    if (this.#replay.isOver) await this.#slots.settle({ isInDoubt: this.#isInDoubt });
  }

  #park(): Promise<void> {
    return this.#options.agent.boundary(this.#options.episode, this.#options.signal);
  }

  /** No checkpoint can hold it: who is closed for one serves it all the same. */
  get #isRestart(): boolean {
    const session = this.#options.agent.sessions.get(this.#options.episode);
    return session !== undefined && !isCapturable(this.#options.agent, session);
  }

  get #contents() {
    return this.#options.agent.contents;
  }

  get #state(): AgentState {
    const session = this.#options.agent.sessions.get(this.#options.episode);
    if (session === undefined) throw new HoldpointError("stale_attempt", "the session is over");
    return session.state;
  }
}

/** A model that refused is asked again after this, where no checkpoint was seen to open. */
const retryMs = 250;
