/**
 * What the log has of an activation already, handed out step by step to the one that runs again.
 *
 * An activation that asks for another step than the log has at that place cannot be continued: what it would be given are the
 * answers to other questions.
 */
import { HoldpointError } from "@holdpoint/errors";
import type { Content, Digest, Episode } from "@holdpoint/schemas";
import type { AgentState } from "./agent-state.ts";
import { latestFirst, type Position, type Step, type ToolStep } from "./steps.ts";

/** A tool call as it is asked for. */
export interface ToolAsked extends Position {
  readonly name: string;
  readonly arguments: Digest;
}

export class Replay {
  readonly #name: string;
  readonly #episode: Episode;
  /** The latest first: what comes next is the last. */
  readonly #steps: Step[];

  /** @param name the definition's, for messages */
  constructor(name: string, episode: Episode, { steps }: Pick<AgentState, "steps">) {
    this.#name = name;
    this.#episode = episode;
    this.#steps = [...latestFirst(steps)];
  }

  /** Nothing is left: from here on steps are taken. */
  get isOver(): boolean {
    return this.#steps.length === 0;
  }

  /**
   * @returns the response that the log has; undefined where the replay is over
   * @throws HoldpointError `invalid_checkpoint_state` where the log has another step here
   */
  call(turn: number, request: Digest): Content | undefined {
    const step = this.#steps.pop();
    if (step === undefined) return undefined;
    if (step.kind !== "call") throw this.diverged(`a model call of turn ${turn}`, said(step));
    this.checkRequest(turn, request, step.request);
    return step.response;
  }

  /** @throws HoldpointError `invalid_checkpoint_state` where the log has another request of this turn */
  checkRequest(turn: number, asked: Digest, recorded: Digest | null): void {
    if (recorded === null || recorded === asked) return;
    throw this.diverged(`request ${asked} in turn ${turn}`, `request ${recorded}`);
  }

  /**
   * @returns the result that the log has; undefined where the replay is over
   * @throws HoldpointError `invalid_checkpoint_state` where the log has another step here
   */
  tool(asked: ToolAsked): Content | undefined {
    const step = this.#steps.pop();
    if (step === undefined) return undefined;
    if (step.kind !== "tool" || !isSame(step, asked)) throw this.diverged(said({ kind: "tool", ...asked }), said(step));
    return step.result;
  }

  /** @throws HoldpointError `invalid_checkpoint_state` where the log has more steps than the activation took */
  end(): void {
    const step = this.#steps.at(-1);
    if (step !== undefined) throw this.diverged("its end", said(step));
  }

  /** What to say to an activation that came to `asked`, where its log has `recorded`. */
  diverged(asked: string, recorded: string): HoldpointError {
    const { rollout, attempt } = this.#episode;
    const what = `the activation of ${this.#name} for ${rollout}, attempt ${attempt}, is not deterministic`;
    const words = `${what}: run again it came to ${asked}, where its log has ${recorded}. ${advice}`;
    return new HoldpointError("invalid_checkpoint_state", words, { details: { rollout, attempt } });
  }
}

const advice =
  "From the same seed and the same answers it has to ask the same again: let it read no clock, no random numbers and nothing outside " +
  "of its session, and hand over to boundary() what it goes on with as it is then";

function isSame(step: ToolStep, asked: ToolAsked): boolean {
  const isThere = step.turn === asked.turn && step.index === asked.index;
  const isIt = step.name === null || step.name === asked.name;
  return isThere && isIt && (step.arguments === null || step.arguments === asked.arguments);
}

function said(step: Step | (ToolAsked & { readonly kind: "tool" })): string {
  if (step.kind === "call") return `a model call of turn ${step.turn}`;
  const input = step.arguments === null ? "" : ` with arguments ${step.arguments}`;
  return `a call of tool ${step.name ?? "(unnamed)"}${input} as number ${step.index} of turn ${step.turn}`;
}
