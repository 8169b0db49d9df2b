/**
 * Obeying what the control subject asks: one ask at a time, in order, each until its answer is in the log.
 *
 * An ask that is over before it was obeyed (resumed, failed, superseded) is aborted and not answered. Whatever it runs is then left
 * to itself, and counts no more: a hook that ignores its signal holds up nothing that is asked next. Only a prepare runs no hook
 * that takes time, and says at its deadline what it waited for.
 */
import { type Obligation, obligationsOf, type ParticipantGate } from "@holdpoint/checkpoint";
import { HoldpointError } from "@holdpoint/errors";
import type { ParticipantEvent } from "@holdpoint/schemas";
import type { SessionEvent } from "@holdpoint/session";
import { capture, commit } from "./capturing.ts";
import type { Participant } from "./participant.ts";
import { prepare } from "./preparing.ts";
import { release, restore, retire } from "./restoring.ts";
import { problemOf } from "./rpc-server.ts";
import { untilAborted } from "./until-aborted.ts";

type AnswerData = Extract<ParticipantEvent, { type: "participant.answered" }>["data"];

/** What an obeyed ask answers, beside what every answer names. */
export interface Answer extends Partial<Omit<AnswerData, "asked" | "operation" | "checkpointId">> {
  /** Events that go before the answer, in its message where they fit. */
  readonly before?: readonly ParticipantEvent[];
}

/** A slow release delays nothing, and work goes on while a commit is still writing. */
const besides: ReadonlySet<string> = new Set(["release", "proceed"]);

export class Obedience<State, Own extends SessionEvent> {
  readonly #participant: Participant<State, Own>;
  readonly #working = new Map<number, AbortController>();
  #busy = false;
  /** An answer could not be appended: this process is fenced or closing, and obeys no more. */
  #over = false;

  constructor(participant: Participant<State, Own>) {
    this.#participant = participant;
  }

  /** Looks at what is owed: ends what is over, begins what is next. */
  look(): void {
    const { gate } = this.#participant;
    for (const [sequence, controller] of this.#working) {
      if (isOver(gate, sequence)) controller.abort(new HoldpointError("stale_checkpoint", "the ask is over"));
    }
    if (this.#over) return;
    for (const obligation of obligationsOf(gate)) {
      const beside = besides.has(obligation.ask.operation);
      if (this.#working.has(obligation.sequence) || (this.#busy && !beside)) continue;
      void this.#obey(obligation, beside);
    }
  }

  async #obey(obligation: Obligation, beside: boolean): Promise<void> {
    const controller = new AbortController();
    this.#working.set(obligation.sequence, controller);
    if (!beside) this.#busy = true;
    try {
      await this.#answer(obligation, await this.#result(obligation, controller));
    } catch (error) {
      this.#over = true;
      const { operation, checkpointId, command } = obligation.ask;
      this.#participant.options.trouble(`an ask to ${operation} was not answered`, error, { checkpointId, command });
    }
    this.#working.delete(obligation.sequence);
    if (!beside) this.#busy = false;
    const { gate } = this.#participant;
    const isFixed = gate.fixed !== undefined || gate.cut !== undefined;
    if (obligation.ask.operation === "capture" && !isFixed) this.#participant.letGo();
    this.look();
  }

  async #result(obligation: Obligation, controller: AbortController): Promise<Answer> {
    const { ask, askedAtMs } = obligation;
    const { clock } = this.#participant;
    const leftMs = Math.max(0, askedAtMs + ask.remainingMs - clock.nowMs());
    const late = new HoldpointError("deadline_exceeded", `not done within ${ask.remainingMs} ms`);
    const timer = setTimeout(() => controller.abort(late), leftMs);
    const { signal } = controller;
    try {
      const running = this.#run(obligation, signal);
      return await (ask.operation === "prepare" ? running : untilAborted(running, signal));
    } catch (error) {
      const { operation, checkpointId, command } = ask;
      const said = `an ask to ${operation} failed`;
      if (!HoldpointError.is(error)) this.#participant.options.trouble(said, error, { checkpointId, command });
      return { problem: problemOf(error) };
    } finally {
      clearTimeout(timer);
    }
  }

  #run(obligation: Obligation, signal: AbortSignal): Promise<Answer> {
    const { ask } = obligation;
    const participant = this.#participant;
    switch (ask.operation) {
      case "prepare":
        return prepare(participant, ask, signal);
      case "capture":
        return capture(participant, obligation, signal);
      case "commit":
        return commit(participant, ask, signal);
      case "restore":
        return restore(participant, ask, signal);
      case "retire":
        return retire(participant, ask, signal);
      case "release":
        return release(participant, ask, signal);
      case "proceed":
      case "resume":
      case "forget":
        return Promise.resolve({});
    }
  }

  /** An ask that is over needs no answer. Only a capture's goes out while the process appends nothing else (L4). */
  async #answer({ ask: { operation, checkpointId }, sequence }: Obligation, { before = [], ...answer }: Answer) {
    if (isOver(this.#participant.gate, sequence)) return;
    const options = { urgent: operation === "capture" };
    const answered = (said: Answer): ParticipantEvent => ({
      type: "participant.answered",
      data: { asked: sequence, operation, checkpointId, ...said },
    });
    try {
      await this.#participant.obey([...before, answered(answer)], options);
    } catch (error) {
      if (!HoldpointError.is(error, "invalid_request")) throw error; // else it was too large for the log
      await this.#participant.obey([answered({ problem: problemOf(tooMany(operation, answer, error)) })], options);
    }
  }
}

/** An answer names each of its episodes, and a message of the log has an end. */
function tooMany(operation: string, answer: Answer, cause: HoldpointError): HoldpointError {
  const { restarts = [], continued = [], installed = [] } = answer;
  const episodes = restarts.length + continued.length + installed.length;
  const { bytes, limit } = cause.details;
  const words = `the answer to an ask to ${operation} names ${episodes} episodes in ${String(bytes)} bytes`;
  const advice = "take shorter rollout ids, or have fewer rollouts under way at once";
  const details = { ...cause.details, episodes };
  return new HoldpointError("invalid_request", `${words}, and a message of the log holds ${String(limit)}: ${advice}`, {
    cause,
    details,
  });
}

function isOver({ asks }: ParticipantGate, sequence: number): boolean {
  return !asks.some((ask) => ask.sequence === sequence);
}
