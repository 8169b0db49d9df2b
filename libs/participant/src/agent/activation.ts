/** One activation of a session: its author's function, from the start or from a continuation, until it returns or is cancelled. */
import { HoldpointError } from "@holdpoint/errors";
import { type Access, type Episode, Json } from "@holdpoint/schemas";
import type { Session } from "@holdpoint/session";
import { authored, HookFailure } from "../author-code.ts";
import { Latch } from "../latch.ts";
import type { AccessBook } from "./access-book.ts";
import type { AgentParticipant, AgentState } from "./agent-state.ts";
import { ParkSignal } from "./park-signal.ts";
import type { Slots } from "./slots.ts";
import { Work } from "./work.ts";

export interface ActivationOptions {
  readonly agent: AgentParticipant;
  /** The definition's, for messages. */
  readonly name: string;
  /** Its steps are not taken here: none can be under way. */
  readonly isOpaque: boolean;
  /** The instance of the resources server whose tools are called. */
  readonly resources: string;
  /** Milliseconds for which what it leaves running is waited for. */
  readonly graceMs: number;
  readonly slots: Slots;
  readonly access: AccessBook;
  /** What the activation does: gives its output. */
  readonly perform: (context: ActivationContext) => Promise<unknown>;
  /** Told what it stopped with, unless it was cancelled, has ended, or that was logged as its author's bug. */
  readonly failed: (error: unknown) => void;
}

/** What an activation is given to do its work with. */
export interface ActivationContext {
  readonly agent: AgentParticipant;
  readonly episode: Episode;
  /** Where the session stood when the activation began, here or there. */
  readonly state: AgentState;
  readonly policyVersion: number;
  readonly continuation: Json | undefined;
  readonly work: Work;
  readonly park: ParkSignal;
  /** Aborted when the session is retired or closed. */
  readonly signal: AbortSignal;
  /** Milliseconds for which what it leaves running is waited for. */
  readonly graceMs: number;
  readonly access: () => Access | undefined;
  readonly renewAccess: () => Promise<Access>;
}

export class Activation {
  readonly episode: Episode;
  readonly done: Promise<void>;
  readonly #options: ActivationOptions;
  readonly #controller = new AbortController();
  readonly #ended = new AbortController();
  /** Cancelled or ended. */
  readonly #over: AbortSignal;
  readonly #park: ParkSignal;
  readonly #overLatch = new Latch();
  #isOver = false;
  #work: Work | undefined;
  #failure: HoldpointError | undefined;

  /** Starts at once, or goes on. `done` never rejects. */
  constructor(options: ActivationOptions, { rollout, attempt }: Episode, policyVersion: number) {
    this.#options = options;
    this.episode = { rollout, attempt };
    this.#over = AbortSignal.any([this.#signal, this.#ended.signal]);
    this.#park = new ParkSignal(options.agent, this.episode, this.#over);
    this.done = this.#run(policyVersion);
  }

  /** Why it stopped by itself before it ended: asking again meets the same. */
  get failure(): HoldpointError | undefined {
    return this.#failure;
  }

  /** undefined until it has begun. */
  get work(): Work | undefined {
    return this.#work;
  }

  /** Stops it, and waits until it has stopped. */
  async cancel(): Promise<void> {
    this.stop();
    await this.done;
  }

  /** Has it stop: its signal is aborted, and each of its steps throws. Waits for nothing. */
  stop(): void {
    if (this.#signal.aborted) return;
    this.#park.stop();
    this.#controller.abort(new HoldpointError("stale_attempt", "the activation was cancelled"));
  }

  /** What it holds goes back, whether it has stopped or not: for one that does not stop. */
  abandon(): void {
    this.#work?.close();
  }

  /** Waits until it is over, for `patienceMs` at most; who gives up leaves nothing behind. @returns whether it is over */
  async isOverWithin(patienceMs: number): Promise<boolean> {
    const patience = new AbortController();
    const timer = setTimeout(() => patience.abort(), patienceMs).unref();
    await this.#overLatch.until(() => this.#isOver, patience.signal).catch(() => {});
    clearTimeout(timer);
    return this.#isOver;
  }

  async #run(policyVersion: number): Promise<void> {
    try {
      await this.#perform(policyVersion);
    } catch (error) {
      if (!this.#signal.aborted) this.#fail(error);
    } finally {
      this.#ended.abort(new HoldpointError("invalid_request", `the activation is over: ${this.#options.name}`));
      this.#work?.close();
      this.#isOver = true;
      this.#overLatch.changed();
    }
  }

  async #perform(policyVersion: number): Promise<void> {
    const { agent, name, perform } = this.#options;
    const context = await this.#begin(policyVersion);
    const piece = {
      title: `activate of ${name}`,
      about: { role: "agent", hook: "activate", ...this.episode },
      code: "invalid_request",
      signal: this.#signal,
      trouble: agent.options.trouble,
    } as const;
    const given = await authored(piece, (signal) => perform({ ...context, signal }));
    this.#signal.throwIfAborted();
    context.work.end();
    if (typeof given !== "string") {
      const found = given === null ? "null" : typeof given;
      throw new HoldpointError(
        "invalid_request",
        `activate of ${name} returned ${found}; expected a string: its output`,
      );
    }
    const output = await agent.contents.write(given);
    await agent.record({ type: "activation.ended", data: { ...this.episode, output } });
  }

  /** What the log says of it is known here before anything new is said. */
  async #begin(asked: number): Promise<ActivationContext> {
    const { agent, name, isOpaque, resources, graceMs, slots, access } = this.#options;
    const { episode } = this;
    const before = this.#session;
    // The same over every replay: it is part of what the model is asked.
    const policyVersion = before.state.policyVersion ?? asked;
    const isInDoubt = wasAtWork(before) && !isOpaque;
    if (!before.state.started) await this.#start(policyVersion);
    const { state } = this.#session;
    if (state.granted && access.of(episode) === undefined) await access.renew(episode, this.#over);
    const work = new Work({ agent, episode, name, resources, slots, signal: this.#over, from: state, isInDoubt });
    this.#work = work;
    return {
      agent,
      episode,
      state,
      policyVersion,
      continuation: await this.#continuation(state),
      work,
      park: this.#park,
      signal: this.#signal,
      graceMs,
      access: () => access.of(episode),
      renewAccess: () => access.renew(episode, this.#over),
    };
  }

  /** New work: before it begins is its first boundary. */
  async #start(policyVersion: number): Promise<void> {
    const { agent } = this.#options;
    await agent.boundary(this.episode, this.#over);
    await agent.record({ type: "activation.started", data: { ...this.episode, policyVersion } });
  }

  async #continuation({ continuation }: AgentState): Promise<Json | undefined> {
    if (continuation === null) return undefined;
    return Json.parse(JSON.parse(await this.#options.agent.contents.read(continuation.boundary)));
  }

  /**
   * What an author's function throws is its answer, as what it returns is: asked again it would say the same. Its words may quote a
   * secret (F10): only those of a `HoldpointError` go out, which were chosen for that.
   */
  #fail(error: unknown): void {
    const words = `the activation of ${this.#options.name} failed: the log of its process says why`;
    this.#failure = HoldpointError.is(error) ? error : new HoldpointError("invalid_request", words, { cause: error });
    if (!(error instanceof HookFailure)) this.#options.failed(error);
  }

  get #signal(): AbortSignal {
    return this.#controller.signal;
  }

  get #session() {
    const session = this.#options.agent.sessions.get(this.episode);
    if (session === undefined) throw new HoldpointError("stale_attempt", "the session is over");
    return session;
  }
}

/** Whether a step may have been under way when the process before this one died. A restart is never in doubt: nothing waits for it. */
function wasAtWork({ state, status }: Session<AgentState>): boolean {
  if (!state.started || status.restart) return false;
  return status.work === "running" || state.awaited !== null || state.isLetGo;
}
