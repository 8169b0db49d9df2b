/**
 * What an author writes of a resources server, and what is wrong with it, said at once and by name.
 *
 * Authors write plain functions on a plain JSON state. What they return is recorded before anybody is answered, and given again
 * when the same is asked again; so none of them has to know whether it runs for the first time.
 */
import type { Json, StepMode } from "@holdpoint/schemas";
import type * as z from "zod";
import type { ModeChoice } from "../definition.ts";
import type { ExternalState, SessionName } from "./external-hooks.ts";

/** What a tool gives back. */
export interface ToolOutcome {
  /** What the caller, a model as a rule, gets to read. */
  readonly result: string;
  /** What the call made of the session's state, as `state.evolve` takes it; a delta, at most 256 KiB of JSON. */
  readonly change?: Json;
  /** The result says what was wrong with the call. Default: false. */
  readonly isError?: boolean;
}

export interface ToolCallOf<State, Input> {
  /** Frozen: what is to change is returned as `change`. */
  readonly state: State;
  readonly input: Input;
  readonly session: SessionName;
  /** Aborted when the session is closed or retired; its end is waited for. */
  readonly signal: AbortSignal;
}

/** A tool, with the type of its input. */
export interface ToolDefinition<State, Input> {
  /** For whoever chooses among the tools. */
  readonly description: string;
  /** An object; input that it refuses is answered with what was wrong, and runs nothing. */
  readonly input: z.ZodType<Input>;
  /**
   * Whether a call that did not end may run again: it changes nothing but the session's state. Default: false; a call that a crash
   * interrupted, or that threw, then makes the session a restart.
   */
  readonly repeats?: boolean;
  /**
   * Runs at most once to its end for each call.
   *
   * A `HoldpointError` that it throws goes out as it is, and says that the call did nothing: with `invalid_request`, `not_found`,
   * `unauthorized` and `deadline_exceeded` the same call is refused the same way again, with `unavailable` it runs again.
   * `invalid_checkpoint_state` says that the session has lost what it stands on, and makes it a restart. Anything else that it throws,
   * also a `HoldpointError` of another code, leaves open what it did, and so does an outcome that cannot be kept: where the tool
   * `repeats` the caller is told `unavailable`, and the call runs again when it is asked again; else the session is a restart. So does
   * what it throws late, or leaves rejected, where nobody catches it; of a tool that `repeats` that is told as `invalid_request`. The
   * words stay in the log of this process.
   */
  readonly run: (call: ToolCallOf<State, Input>) => Promise<ToolOutcome>;
}

/** What every verdict has; the rest of it is the workload's. */
export interface VerdictOf {
  readonly reward: number;
  readonly [name: string]: Json;
}

export interface Verification<State, Seed> {
  readonly state: State;
  readonly seed: Seed;
  /** What the agent's activation gave; undefined where there was none. */
  readonly output: string | undefined;
  readonly session: SessionName;
  /** Aborted when the session is closed or retired. */
  readonly signal: AbortSignal;
}

/** @typeParam Inputs what each tool takes, by its name */
export interface ResourcesDefinition<State extends Json, Seed, Inputs> {
  /** For messages, and how the server is called over MCP. */
  readonly name: string;
  /**
   * How sessions outlive this process, decided once when it starts: here a server may try out what it stands on.
   * Default: `restart_only`, so that nothing is held that cannot be given back.
   */
  readonly mode?: ModeChoice;
  /** What an episode is seeded with. */
  readonly seed: z.ZodType<Seed>;
  /** What a session holds, as JSON (a type alias: interfaces are open, and no JSON to a compiler); absent: nothing, and no changes. */
  readonly state?: {
    /** What a session begins with; at most 256 KiB of JSON. It is recorded, and called once for each session. */
    readonly open: (seed: Seed) => State | Promise<State>;
    /** Pure: the same change on the same state gives the same, in every process. The state is frozen. */
    readonly evolve: (state: State, change: Json) => State;
  };
  /** By name: 1 to 128 of `A-Z a-z 0-9 _ -`. */
  readonly tools: { readonly [Name in keyof Inputs]: ToolDefinition<State, Inputs[Name]> };
  readonly verify: {
    /**
     * `replay`: it may run again, and a checkpoint does not wait for it. Default: `wait`. After a crash in the middle either kind runs
     * again; what has finished never does.
     */
    readonly mode?: StepMode;
    /**
     * A `HoldpointError` of the codes that a tool may throw goes out as it is: with `unavailable` it is asked again. Anything else is a
     * mistake of its own: the caller is told `invalid_request`, the episode fails, and the words stay in the log of this process.
     */
    readonly run: (verification: Verification<State, Seed>) => Promise<VerdictOf>;
  };
  /** Each seed reply carries a token of its attempt, which opens the tools over MCP for so long. Absent: direct calls only. */
  readonly grants?: {
    /** Milliseconds. */
    readonly ttlMs: number;
  };
  /** State that cannot live in the log; only an `exported` server is asked to capture it. */
  readonly external?: ExternalState;
  /** The external state is a sandbox that is lent to the agent: it is told anew after a restore. Default: false. */
  readonly lends?: boolean;
}

/** A tool by itself, outside a definition: `tool<State, Input>({ … })`. */
export function tool<State, Input>(definition: ToolDefinition<State, Input>): ToolDefinition<State, Input> {
  return definition;
}
