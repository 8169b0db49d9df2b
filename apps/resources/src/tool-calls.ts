/**
 * Tool calls by name: each is executed once, and answered from the log from then on (L3).
 *
 *  1. `tool.started` is acknowledged before anything is executed, `tool.finished` before anything is answered (L2).
 *  2. Before a call that may change the sandbox a snapshot is taken. A call that started and did not finish is rolled back to it
 *     in a fresh sandbox; only then the call, or another, may start.
 *  3. A call that changes nothing needs no snapshot: it may run again.
 */
import { HoldpointError } from "@holdpoint/errors";
import { decodeEvents } from "@holdpoint/eventsourcing";
import { sha256 } from "@holdpoint/participant";
import type { Content, Episode, ToolRequest } from "@holdpoint/schemas";
import { type FinishedCall, finishedCall, type RepairSession, type ToolCall } from "./repair-session.ts";
import type { Bench } from "./bench.ts";
import { rollBack } from "./rolling-back.ts";
import { mayChange, type Tools } from "./tools.ts";
import { atBench, forgetCallSnapshots, newId, sessionIn, targetOf, type Workshop } from "./workshop.ts";

type Request = Omit<ToolRequest, "to">;

/** A call that is about to be executed. */
interface Order {
  readonly episode: Episode;
  readonly call: ToolCall;
  readonly input: string;
}

export class ToolCalls {
  readonly #workshop: Workshop;
  readonly #tools: Tools;

  constructor(workshop: Workshop, tools: Tools) {
    this.#workshop = workshop;
    this.#tools = tools;
  }

  /**
   * The result of a call: of its one execution.
   *
   * @throws HoldpointError `session_conflict` where the call of this name was another, `invalid_checkpoint_state` where the
   *   sandbox was lost, `stale_attempt` where the session ends meanwhile
   */
  answer({ rollout, attempt }: Episode, { turn, index, name, arguments: input }: Request): Promise<Content> {
    const episode = { rollout, attempt };
    const call = { turn, index, name, arguments: sha256(input) };
    const shared = `${turn}/${index} ${name} ${call.arguments}`;
    return atBench(this.#workshop, episode, (bench) =>
      bench.join(shared, () => bench.run((signal) => this.#answer({ episode, call, input }, signal))),
    );
  }

  async #answer(order: Order, signal: AbortSignal): Promise<Content> {
    const { state } = sessionIn(this.#workshop, order.episode);
    const finished = finishedCall(state, order.call);
    if (finished !== undefined) return this.#again(order, state, finished);
    if (state.started !== null) await rollBack(this.#workshop, order.episode);
    await this.#start(order);
    return this.#execute(order, signal);
  }

  async #start({ episode, call }: Order): Promise<void> {
    const { participant, provider, benches } = this.#workshop;
    const { sandbox } = sessionIn(this.#workshop, episode);
    if (!mayChange(call.name)) {
      return participant.record({ type: "tool.started", data: { ...episode, ...call, snapshot: null } });
    }
    const snapshot = newId("call", episode);
    benches.of(episode).snapshots.add(snapshot);
    const { digest } = await provider.snapshot(sandbox, snapshot);
    await participant.record(
      {
        type: "snapshot.taken",
        data: { ...episode, snapshot, sandbox, checkpointId: null, digest, provider: provider.name },
      },
      { type: "tool.started", data: { ...episode, ...call, snapshot } },
    );
  }

  async #execute({ episode, call, input }: Order, signal: AbortSignal): Promise<Content> {
    const { participant, executions, benches } = this.#workshop;
    const { state, sandbox } = sessionIn(this.#workshop, episode);
    const target = await targetOf(this.#workshop, state);
    const { turn, index, name } = call;
    const execution = newId("run", episode);
    const answer = await executions.during({ ...episode, execution, turn, index, name }, () =>
      this.#tools.run({ sandbox, target }, { name, arguments: input }, signal),
    );
    const result = await participant.contents.write(answer);
    await participant.record({ type: "tool.finished", data: { ...episode, turn, index, execution, result } });
    this.#forgetSnapshots(benches.of(episode));
    return result;
  }

  /** Beside the answer, before the next call. A bench that is stopped leaves it to whoever stopped it. */
  #forgetSnapshots(bench: Bench): void {
    bench
      .run(() => forgetCallSnapshots(this.#workshop, bench.snapshots))
      .catch((error: unknown) => {
        if (!bench.signal.aborted) this.#workshop.participant.options.trouble("a snapshot was not deleted", error);
      });
  }

  async #again({ episode, call }: Order, state: RepairSession, finished: FinishedCall): Promise<Content> {
    if (finished.name !== call.name || finished.arguments !== call.arguments) {
      throw new HoldpointError(
        "session_conflict",
        `call ${call.turn}/${call.index} of ${episode.rollout} was ${finished.name} with other arguments`,
        { details: { ...episode, turn: call.turn, index: call.index } },
      );
    }
    if (finished === state.latest && state.latestResult !== null) return state.latestResult;
    return this.#fromLog(episode, finished);
  }

  async #fromLog({ rollout }: Episode, { turn, index, sequence, digest }: FinishedCall): Promise<Content> {
    const { options, spec } = this.#workshop.participant;
    const message = await options.log.get(sequence);
    for (const { event } of decodeEvents(message, spec.schema).events) {
      if (event.type !== "tool.finished" || event.data.rollout !== rollout) continue;
      if (event.data.turn === turn && event.data.index === index) return event.data.result;
    }
    throw new HoldpointError("invalid_checkpoint_state", `message ${sequence} of the log does not hold the result`, {
      details: { rollout, turn, index, digest },
    });
  }
}
