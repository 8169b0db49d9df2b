/**
 * Obeying what the control subject asks: one ask at a time, in order, each until its answer is in the log.
 *
 * An ask that is over before it was obeyed (resumed, failed, superseded) is aborted and not answered. A release runs beside
 * the others, so that a slow one delays nothing.
 */
import { isStale, type Obligation, obligationsOf } from "@holdpoint/checkpoint";
import { HoldpointError } from "@holdpoint/errors";
import type { ParticipantEvent } from "@holdpoint/schemas";
import type { SessionEvent } from "@holdpoint/session";
import { capture, commit } from "./capturing.ts";
import type { Participant } from "./participant.ts";
import { prepare } from "./preparing.ts";
import { release, restore, retire } from "./restoring.ts";
import { problemOf } from "./rpc-server.ts";

type AnswerData = Extract<ParticipantEvent, { type: "participant.answered" }>["data"];

/** What an obeyed ask answers, beside what every answer names. */
export type Answer = Partial<Omit<AnswerData, "asked" | "operation" | "checkpointId">>;

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
    const owed = obligationsOf(this.#participant.gate);
    const sequences = new Set(owed.map(({ sequence }) => sequence));
    for (const [sequence, controller] of this.#working) {
      if (!sequences.has(sequence)) controller.abort(new HoldpointError("stale_checkpoint", "the ask is over"));
    }
    if (this.#over) return;
    for (const obligation of owed) {
      const isRelease = obligation.ask.operation === "release";
      if (this.#working.has(obligation.sequence) || (this.#busy && !isRelease)) continue;
      void this.#obey(obligation, isRelease);
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
      this.#participant.options.trouble(`an ask to ${obligation.ask.operation} was not answered`, error);
    }
    this.#working.delete(obligation.sequence);
    if (!beside) this.#busy = false;
    this.look();
  }

  async #result(obligation: Obligation, controller: AbortController): Promise<Answer> {
    const { ask, askedAtMs } = obligation;
    const { clock } = this.#participant;
    const leftMs = Math.max(0, askedAtMs + ask.remainingMs - clock.nowMs());
    const late = new HoldpointError("deadline_exceeded", `not done within ${ask.remainingMs} ms`);
    const timer = setTimeout(() => controller.abort(late), leftMs);
    try {
      return await this.#run(obligation, controller.signal);
    } catch (error) {
      return { problem: problemOf(error) };
    } finally {
      clearTimeout(timer);
    }
  }

  #run({ ask }: Obligation, signal: AbortSignal): Promise<Answer> {
    const participant = this.#participant;
    switch (ask.operation) {
      case "prepare":
        return prepare(participant, ask, signal);
      case "capture":
        return capture(participant, ask, signal);
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

  /** An ask that is over needs no answer; one of its id would be stale. */
  async #answer({ ask, sequence }: Obligation, answer: Answer): Promise<void> {
    const { gate } = this.#participant;
    const isOver = !gate.asks.some((other) => other.sequence === sequence);
    const { operation, checkpointId } = ask;
    if (isOver || (operation === "prepare" && checkpointId !== null && isStale(gate, checkpointId))) return;
    const data = { asked: sequence, operation, checkpointId, ...answer };
    await this.#participant.obey([{ type: "participant.answered", data }], { urgent: true });
    if (operation === "capture" && answer.problem !== undefined) this.#participant.letGo();
  }
}
