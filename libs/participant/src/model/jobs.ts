/** Calls in the making. Whoever asks for the same call meanwhile joins it; when all have gone it is dropped. */
import { HoldpointError } from "@holdpoint/errors";
import { type Ledger, type LedgerEvent, nextTurn } from "@holdpoint/ledger";
import type { Digest, Episode } from "@holdpoint/schemas";
import { callSeed } from "./call-seed.ts";
import type { PolicyCall } from "./chat-request.ts";
import type { Policies } from "./define-model.ts";
import type { Model } from "./model.ts";
import { policyOf, replied } from "./replied.ts";

interface Job {
  readonly episode: Episode;
  readonly turn: number;
  readonly digest: Digest;
  readonly controller: AbortController;
  /** Callers that have not gone. One that was refused because admission closed has not: it asks again. */
  wanted: number;
  done: Promise<void>;
}

export class Jobs {
  readonly #model: Model;
  readonly #policies: Policies;
  /** By episode. */
  readonly #running = new Map<string, Set<Job>>();

  constructor(model: Model, policies: Policies) {
    this.#model = model;
    this.#policies = policies;
  }

  /**
   * Makes the call, or joins the one that does; returns once its row is in the ledger.
   *
   * @throws HoldpointError as `ModelCalls.answer`
   */
  join(call: PolicyCall, ledger: Ledger): Promise<void> {
    const job = this.#runningFor(call) ?? this.#start(call, ledger);
    if (job.digest !== call.digest) {
      throw new HoldpointError("session_conflict", `turn ${job.turn} is being asked with another request`, {
        details: { ...call.episode, turn: job.turn },
      });
    }
    job.wanted += 1;
    call.signal.addEventListener("abort", () => (job.wanted -= 1), { once: true });
    return job.done;
  }

  /** Ends the jobs of the episodes that `isOver` says, and waits for their end. */
  async end(isOver: (episode: Episode) => boolean, reason: HoldpointError): Promise<void> {
    const over = [...this.#running.values()].flatMap((jobs) => [...jobs]).filter(({ episode }) => isOver(episode));
    for (const { controller } of over) controller.abort(reason);
    await Promise.allSettled(over.map(({ done }) => done));
  }

  #runningFor({ episode, turn, digest }: PolicyCall): Job | undefined {
    const jobs = [...(this.#running.get(keyOf(episode)) ?? [])];
    return jobs.find((job) => (turn === undefined ? job.digest === digest : job.turn === turn));
  }

  #start(call: PolicyCall, ledger: Ledger): Job {
    const { episode, digest } = call;
    const key = keyOf(episode);
    const jobs = this.#running.get(key) ?? new Set();
    const next = Math.max(nextTurn(ledger), ...[...jobs].map(({ turn }) => turn + 1));
    if (call.turn !== undefined && call.turn !== next) throw outOfTurn(call, next, this.#isKnown(episode));
    const controller = new AbortController();
    const job: Job = { episode, turn: next, digest, controller, wanted: 0, done: Promise.resolve() };
    this.#running.set(key, jobs.add(job));
    job.done = this.#make(call, job).finally(() => {
      jobs.delete(job);
      if (jobs.size === 0) this.#running.delete(key);
    });
    job.done.catch(() => undefined); // whoever still waits is told; nobody else has to know
    return job;
  }

  #isKnown(episode: Episode): boolean {
    return this.#model.sessions.get(episode) !== undefined;
  }

  async #make(call: PolicyCall, job: Job): Promise<void> {
    const { signal } = job.controller;
    const { request: asked } = call;
    const { episode, turn, digest: request } = job;
    const { trouble } = this.#model.options;
    const caller = { of: { ...episode, call: String(turn) }, signal, trouble };
    const policy = await policyOf(this.#policies, asked.model, caller);
    const policyVersion = policy.version;
    const started: LedgerEvent = { type: "call.started", data: { ...episode, turn, request, policyVersion } };
    await this.#model.record(...this.#receivedBefore(call), started);
    const seed = callSeed({ rollout: episode.rollout, turn }, asked.seed);
    const { text, staged, ...tokens } = await replied(policy, asked, { seed, ...caller });
    const response = await this.#model.contents.write(text);
    const staging = staged === null ? null : await this.#model.options.blobs.put(staged); // before the row that names it
    signal.throwIfAborted();
    if (job.wanted === 0) throw new HoldpointError("unavailable", "every caller has gone");
    const data = { ...episode, turn, request, response, staging, policyVersion, ...tokens };
    await this.#model.record({ type: "call.finished", data });
  }

  /** A caller that names its turns and asks for this one has all responses before it, whatever the ledger thinks. */
  #receivedBefore({ episode, turn }: PolicyCall): LedgerEvent[] {
    if (turn === undefined) return [];
    const held = this.#model.sessions.get(episode)?.state.held ?? [];
    return held.map((row): LedgerEvent => ({ type: "call.delivered", data: { ...episode, turn: row.turn } }));
  }
}

function outOfTurn({ episode, turn }: PolicyCall, next: number, isKnown: boolean): HoldpointError {
  const { rollout, attempt } = episode;
  const details = { rollout, attempt, asked: turn, next };
  if (!isKnown) {
    const why = `no ledger of ${rollout}, attempt ${attempt}, is here, and turn ${turn} is not its first: restore it first`;
    return new HoldpointError("not_found", why, { details });
  }
  return new HoldpointError("session_conflict", `turn ${turn} of ${rollout} was asked, and ${next} is next`, {
    details,
  });
}

function keyOf({ rollout, attempt }: Episode): string {
  return `${rollout}/${attempt}`;
}
