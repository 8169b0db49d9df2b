/**
 * Tool calls by name: each is executed once, and answered from the log from then on (L3).
 *
 * 1. `tool.started` is acknowledged before anything is executed, `tool.finished` before anything is answered (L2).
 * 2. A call that did not end may run again where its tool `repeats`, or has said itself that it did nothing. Any other makes its
 *    session a restart: what it did is not known. So does one whose result could not be recorded.
 * 3. What is wrong with a call is its result, for whoever wrote it. A refusal is an error of the protocol, never a text in a
 *    conversation.
 * 4. What a tool throws stays in this process: no word of it goes into the log or a reply.
 * 5. A tool that has returned has done something: where what it gave cannot be kept, that is as if it had thrown.
 */
import { HoldpointError } from "@holdpoint/errors";
import { decodeEvents, parseJson } from "@holdpoint/eventsourcing";
import type { Episode, Json, Problem, ResourcesEvent } from "@holdpoint/schemas";
import { HookFailure } from "../author-code.ts";
import { sha256 } from "../hash.ts";
import { problemOf } from "../rpc-server.ts";
import { aboutOf, hooked } from "./author-hook.ts";
import type { CheckedOutcome, CheckedTool, PreparedTool } from "./define-resources.ts";
import { atBench, type Desk, type Given, markLost, namedSession, sessionIn, soundSessionIn } from "./desk.ts";
import { canonicalJson } from "../live-sessions.ts";
import { type CallName, type FinishedCall, finishedCall, nameOf, refusal, type ToolCall } from "./resources-session.ts";

/** Why a prepare waits for a tool call, however it came. */
export const toolBlocks = "tool call in flight";

/** What a tool is asked. */
export interface Asked {
  readonly name: string;
  /** JSON, as whoever calls wrote it. */
  readonly arguments: string;
}

interface Order {
  readonly episode: Episode;
  readonly call: ToolCall;
  readonly input: string;
}

/** What became of an execution: it is recorded, whichever it is. */
type Ended = CheckedOutcome | { readonly problem: Problem };

interface Ready {
  readonly tool: CheckedTool;
  readonly run: PreparedTool;
}

export class ToolCalls {
  readonly #desk: Desk;

  constructor(desk: Desk) {
    this.#desk = desk;
  }

  /**
   * The result of an agent's call: of its one execution.
   *
   * @throws HoldpointError `session_conflict` where the call of this name was another, `invalid_checkpoint_state` where the
   *   session was lost, `stale_attempt` where it ends meanwhile; and what the tool refused with
   */
  direct(episode: Episode, { turn, index }: { readonly turn: number; readonly index: number }, asked: Asked) {
    return this.#named(episode, { caller: undefined, turn, index, key: undefined }, asked);
  }

  /**
   * The result of an MCP call, under the next number; one that its client has named is answered again under its name.
   *
   * @param signal aborted when the client has gone: a call that has not started then never does
   * @throws HoldpointError as `direct` does
   */
  mcp(episode: Episode, asked: Asked, { key, signal }: { readonly key?: string; readonly signal: AbortSignal }) {
    if (key !== undefined) return this.#named(episode, { caller: "mcp", turn: 0, index: 0, key }, asked, signal);
    const numbered = async (over: AbortSignal): Promise<Given> => {
      signal.throwIfAborted();
      const { mcpCalls } = sessionIn(this.#desk, episode).state;
      const order = orderOf(episode, { caller: "mcp", turn: mcpCalls, index: 0, key }, asked);
      return this.#anew(order, over);
    };
    return atBench(this.#desk, episode, (bench) => bench.run(numbered));
  }

  #named(episode: Episode, name: CallName, asked: Asked, gone?: AbortSignal): Promise<Given> {
    const order = orderOf(episode, name, asked);
    const once = async (over: AbortSignal): Promise<Given> => {
      const { state } = sessionIn(this.#desk, episode);
      const finished = finishedCall(state, name, sha256);
      if (finished !== undefined) return this.#again(order, finished);
      gone?.throwIfAborted();
      const turn = name.caller === "mcp" ? state.mcpCalls : name.turn;
      return this.#anew({ ...order, call: { ...order.call, turn } }, over);
    };
    const shared = `${nameOf(name)} ${order.call.name} ${order.call.arguments}`;
    return atBench(this.#desk, episode, (bench) => bench.join(shared, () => bench.run(once)));
  }

  async #anew(order: Order, signal: AbortSignal): Promise<Given> {
    const { participant } = this.#desk;
    await soundSessionIn(this.#desk, order.episode);
    const { caller, key, ...call } = order.call;
    const by = { ...(caller !== undefined && { caller }), ...(key !== undefined && { key }) };
    const started: ResourcesEvent = {
      type: "tool.started",
      data: { ...order.episode, ...call, snapshot: null, ...by },
    };
    const ready = await this.#prepared(order);
    signal.throwIfAborted();
    if (!("tool" in ready)) return this.#record(order, ready, [started]); // nothing runs, so nothing can be left open
    await participant.record(started);
    return this.#record(order, await this.#executed(order, ready, signal));
  }

  /** What is to run, or why nothing does. */
  async #prepared({ episode, call, input }: Order): Promise<Ready | Ended> {
    const { tools } = this.#desk.resources;
    const tool = tools.get(call.name);
    if (tool === undefined) return wrong(`there is no tool ${call.name}; there are ${[...tools.keys()].join(", ")}`);
    const json = parseJson(new TextEncoder().encode(input));
    const name = `tools.${call.name}.input`;
    const schema = { name, code: "invalid_request", episode, call: nameOf(call) } as const;
    try {
      const run = await hooked(this.#desk, schema, () => tool.prepare(json.ok ? json.value : undefined));
      return typeof run === "function" ? { tool, run } : wrong(run.wrong);
    } catch (error) {
      return { problem: problemOf(error) };
    }
  }

  async #executed(order: Order, { tool, run }: Ready, signal: AbortSignal): Promise<Ended> {
    const session = sessionIn(this.#desk, order.episode);
    const { state } = session.state;
    const called = { ...calledOf(order), code: "unavailable", signal } as const;
    try {
      return await hooked(this.#desk, called, async (over) => {
        const outcome = await run({ state, session: namedSession(session), signal: over });
        if (outcome.change !== undefined) this.#fold(state, outcome.change); // what cannot be folded is not recorded
        return outcome;
      });
    } catch (error) {
      signal.throwIfAborted();
      return this.#failed(order, tool, error);
    }
  }

  /** @returns how the call ended, which is recorded @throws where it has no end */
  async #failed(order: Order, { repeats }: CheckedTool, error: unknown): Promise<Ended> {
    const { resources, participant } = this.#desk;
    const { episode, call } = order;
    const isBug = error instanceof HookFailure;
    const isLost = HoldpointError.is(error, "invalid_checkpoint_state");
    if (!isBug)
      participant.options.trouble(
        `the tool ${call.name} of ${resources.name} refused`,
        error,
        aboutOf(calledOf(order)),
      );
    if (!isLost && (!isBug || repeats)) return { problem: problemOf(error) };
    const why = HoldpointError.is(error) ? error.message : String(error);
    await markLost(this.#desk, episode, `the call ${nameOf(call)} of ${call.name} has no end: ${why}`);
    throw isLost ? error : lost(call, error);
  }

  /** @throws what is no `HoldpointError`: the author's function that would say one has returned */
  #fold(state: Json, change: Json): void {
    try {
      this.#desk.resources.evolve(state, change);
    } catch (error) {
      throw HoldpointError.is(error)
        ? new TypeError(`its change cannot be folded: ${error.message}`, { cause: error })
        : error;
    }
  }

  /** @param before what goes before it, in the same message */
  async #record({ episode, call }: Order, ended: Ended, before: readonly ResourcesEvent[] = []): Promise<Given> {
    const { participant, newId } = this.#desk;
    const { caller, turn, index } = call;
    const named = {
      ...episode,
      turn,
      index,
      execution: newId("run", episode),
      ...(caller !== undefined && { caller }),
    };
    if ("problem" in ended) {
      const result = await participant.contents.write("");
      const { problem } = ended;
      await participant.record(...before, { type: "tool.finished", data: { ...named, result, problem } });
      throw refusal(ended.problem);
    }
    const { change, isError } = ended;
    const content = await participant.contents.write(ended.result);
    const more = { ...(change !== undefined && { change }), ...(isError && { isError }) };
    await participant.record(...before, { type: "tool.finished", data: { ...named, result: content, ...more } });
    return { content, isError };
  }

  async #again({ episode, call }: Order, finished: FinishedCall): Promise<Given> {
    if (finished.name !== call.name || finished.arguments !== call.arguments) {
      throw new HoldpointError(
        "session_conflict",
        `call ${nameOf(call)} of ${episode.rollout} was ${finished.name} with other arguments`,
        { details: { ...episode, call: nameOf(call) } },
      );
    }
    const { result, isError = false, problem } = await recordedEnd(this.#desk, episode, finished);
    if (problem !== undefined) throw refusal(problem);
    return { content: result, isError };
  }
}

type FinishedData = Extract<ResourcesEvent, { type: "tool.finished" }>["data"];

/** What the log has of a call that has finished. */
async function recordedEnd({ participant }: Desk, { rollout }: Episode, call: FinishedCall): Promise<FinishedData> {
  const { options, spec } = participant;
  const message = await options.log.get(call.sequence);
  const isIt = ({ turn, index, caller, result, ...data }: FinishedData) =>
    data.rollout === rollout &&
    turn === call.turn &&
    index === call.index &&
    caller === call.caller &&
    result.digest === call.digest;
  for (const { event } of decodeEvents(message, spec.schema).events) {
    if (event.type === "tool.finished" && isIt(event.data)) return event.data;
  }
  throw new HoldpointError("invalid_checkpoint_state", `message ${call.sequence} of the log does not hold the result`, {
    details: { rollout, call: nameOf(call) },
  });
}

function orderOf({ rollout, attempt }: Episode, name: CallName, asked: Asked): Order {
  const call = { ...name, name: asked.name, arguments: sha256(asked.arguments) };
  return { episode: { rollout, attempt }, call, input: asked.arguments };
}

function calledOf({ episode, call }: Order) {
  return { name: `the tool ${call.name}`, episode, call: nameOf(call) };
}

/** Of arguments that came as a value: the same for the same. */
export function argumentsText(value: Readonly<Record<string, unknown>> | undefined): string {
  return canonicalJson(value ?? {});
}

/** What a model did wrong, for the model to read. */
function wrong(why: string): CheckedOutcome {
  return { result: `error: ${why}`, change: undefined, isError: true };
}

function lost(call: ToolCall, cause: unknown): HoldpointError {
  const words = `the call ${nameOf(call)} of ${call.name} failed, and what it did is not known: the episode has to start over`;
  return new HoldpointError("invalid_checkpoint_state", words, { cause });
}
