/**
 * The calls of the policy: each is made once, is in the ledger before it is answered, and is answered from there for ever after.
 *
 *  1. `call.started` → the policy → `call.finished` → `call.delivered` → the response; each acknowledged before the next (L2).
 *  2. While admission is closed nobody is answered whom the checkpoint may hold: callers that know what it means are refused, also those who wait already;
 *     all others are held. A call that was started goes on, and its response stays in the ledger, undelivered.
 *  3. A caller that asks again for what was delivered to it does not have it. While closed the ledger says so, once
 *     (`call.withheld`), so that both ends agree about the cut (L5).
 *  4. A call whose callers have all gone before it finished leaves no row.
 */
import { HoldpointError } from "@holdpoint/errors";
import {
  emptyLedger,
  type Ledger,
  type LedgerEvent,
  type LedgerRow,
  type Lookup,
  lookup,
  recall,
} from "@holdpoint/ledger";
import type { Episode } from "@holdpoint/schemas";
import { keyOf } from "@holdpoint/session";
import type { PolicyCall } from "./chat-request.ts";
import { Holding } from "./holding.ts";
import { Jobs } from "./jobs.ts";
import type { Policies } from "./define-model.ts";
import type { Model } from "./model.ts";

/** Of how many episodes it is remembered that they have ended, beside what the log says: a straggling call comes soon, or never. */
const rememberedEndings = 10_000;

export interface ModelCallsOptions {
  readonly model: Model;
  readonly policies: Policies;
  /** Milliseconds that a caller that is not aware is held for. */
  readonly holdMs: number;
}

/** A call's row, and the text of its response: an assistant message as JSON. */
export interface Answered {
  readonly row: LedgerRow;
  readonly text: string;
}

export class ModelCalls {
  readonly #model: Model;
  readonly #jobs: Jobs;
  readonly #holding: Holding;
  /** Episodes that have ended here without a ledger, or before it was closed; the oldest first. */
  readonly #ended = new Set<string>();

  constructor({ model, policies, holdMs }: ModelCallsOptions) {
    this.#model = model;
    this.#jobs = new Jobs(model, policies);
    this.#holding = new Holding(model.admission, holdMs);
  }

  /**
   * Answers from the ledger, or makes the call.
   *
   * @throws HoldpointError `admission_closed` where a checkpoint is open; `stale_attempt` where the attempt was retired, or has ended;
   *   `session_conflict` where the turn was asked with another request, or is not the next; `not_found` where the ledger of an
   *   episode that is under way is not here; `invalid_checkpoint_state` where its ledger was restored incomplete; what
   *   `Policies.find` throws
   */
  async answer(call: PolicyCall): Promise<Answered> {
    for (;;) {
      this.#check(call.episode);
      const found = this.#lookup(call);
      if (found.status === "conflicting") throw conflict(call, found.row);
      if (this.#isClosed(call)) await this.#closed(call, found);
      else if (found.status === "answered") return this.#deliver(call, found);
      else await this.#whileOpen(call);
    }
  }

  /** Ends all calls of these attempts and of all before them; returns when none is in the making. */
  async retire(marks: readonly Episode[]): Promise<void> {
    const highest = new Map(marks.map(({ rollout, attempt }) => [rollout, attempt]));
    const isOver = ({ rollout, attempt }: Episode) => attempt <= (highest.get(rollout) ?? -1);
    const reason = new HoldpointError("stale_attempt", "the attempt was retired");
    this.#holding.end(({ episode }) => isOver(episode), reason);
    await this.#jobs.end(isOver, reason);
  }

  /** Ends all calls of an episode that has ended; returns when none is in the making. */
  end(episode: Episode): Promise<void> {
    const key = keyOf(episode);
    this.#ended.delete(key);
    this.#ended.add(key);
    const [oldest] = this.#ended;
    if (this.#ended.size > rememberedEndings && oldest !== undefined) this.#ended.delete(oldest);
    const isOver = (other: Episode) => keyOf(other) === key;
    this.#holding.end(({ episode: other }) => isOver(other), over(episode));
    return this.#jobs.end(isOver, over(episode));
  }

  #hasEnded(episode: Episode): boolean {
    const { sessions } = this.#model;
    return this.#ended.has(keyOf(episode)) || (sessions.get(episode) === undefined && sessions.hasEnded(episode));
  }

  #check(episode: Episode): void {
    this.#model.admission.check(episode);
    if (this.#hasEnded(episode)) throw over(episode);
    if (this.#model.sessions.get(episode)?.status.restart !== true) return;
    const { rollout, attempt } = episode;
    const why = `the ledger of ${rollout}, attempt ${attempt}, was restored incomplete: start the rollout over`;
    throw new HoldpointError("invalid_checkpoint_state", why, { details: { rollout, attempt } });
  }

  /** A ledger that no checkpoint holds is answered from while one is open. */
  #isClosed({ restart }: PolicyCall): boolean {
    const { admission, spec } = this.#model;
    return admission.isClosed && !restart && spec.mode !== "restart_only";
  }

  #lookup({ episode, turn, digest }: PolicyCall): Lookup {
    const ledger = this.#ledger(episode);
    if (turn !== undefined) return lookup(ledger, turn, digest);
    const row = recall(ledger, digest);
    return row === undefined ? { status: "unknown" } : lookup(ledger, row.turn, digest);
  }

  #ledger(episode: Episode): Ledger {
    return this.#model.sessions.get(episode)?.state ?? emptyLedger;
  }

  async #closed(call: PolicyCall, found: Lookup): Promise<void> {
    if (!call.aware) return this.#holding.wait(call);
    call.signal.throwIfAborted();
    if (found.status === "answered" && found.delivered) {
      await this.#record({ type: "call.withheld", data: { ...call.episode, turn: found.row.turn } });
    }
    throw new HoldpointError("admission_closed", "a checkpoint is open: park, and ask the same again after it");
  }

  async #deliver(call: PolicyCall, { row, delivered }: Extract<Lookup, { status: "answered" }>): Promise<Answered> {
    const text = await this.#model.contents.read(row.response);
    call.signal.throwIfAborted();
    if (!delivered) await this.#record({ type: "call.delivered", data: { ...call.episode, turn: row.turn } });
    return { row, text };
  }

  /** Returns when the call is made, or when admission has closed before that and the caller has to know. */
  async #whileOpen(call: PolicyCall): Promise<void> {
    const settled = new AbortController();
    const signal = AbortSignal.any([settled.signal, call.signal]);
    const closed = this.#model.admission.gateLatch.until(() => call.aware && this.#isClosed(call), signal);
    closed.catch(() => undefined); // where the race is not even begun
    try {
      await Promise.race([this.#jobs.join(call, this.#ledger(call.episode)), closed]);
    } finally {
      settled.abort();
    }
  }

  async #record(event: LedgerEvent): Promise<void> {
    await this.#model.record(event);
  }
}

function over({ rollout, attempt }: Episode): HoldpointError {
  const why = `attempt ${attempt} of ${rollout} has ended: its ledger is closed`;
  return new HoldpointError("stale_attempt", why, { details: { rollout, attempt } });
}

function conflict({ episode, turn, digest }: PolicyCall, row: LedgerRow): HoldpointError {
  const asked = { asked: digest, before: row.request };
  const why = `turn ${turn} of ${episode.rollout} was asked with another request before: a turn has one request`;
  return new HoldpointError("session_conflict", why, { details: { ...episode, ...asked } });
}
