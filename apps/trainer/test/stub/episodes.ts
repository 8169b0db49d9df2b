/**
 * An environment, its agents and its model in one, as a trainer meets them: dispatches are taken, rows appear on the model's
 * log, results on the result subject. What is learnt from an episode depends on its rollout and on the weights that its policy
 * version stands for when it runs, and on nothing else.
 */
import { decodeEvents, eventSchema, parseJson } from "@holdpoint/eventsourcing";
import { type LogWriter, sha256 } from "@holdpoint/participant";
import { initialWeights, seedFrom } from "@holdpoint/repair";
import { type Episode, filters, logEvents, type LogEventOf, RunRequest, seedSubject } from "@holdpoint/schemas";
import { setTimeout as delay } from "node:timers/promises";
import type { Seat } from "./process.ts";

const turns = 3;
const trainerEvents = eventSchema(logEvents.trainer);

/** An episode that can still run. */
export interface LiveEpisode extends Episode {
  readonly policyVersion: number;
  /** Turns that are on the model's log. */
  readonly done: number;
  /** Nobody has dispatched this continuation yet. */
  readonly claimed: boolean;
}

export interface EpisodesOptions {
  readonly run: string;
  readonly environment: Seat;
  readonly model: Seat;
  readonly writers: {
    readonly environment: LogWriter<LogEventOf<"environment">>;
    readonly model: LogWriter<LogEventOf<"model">>;
  };
  /** Rollouts that end otherwise than finished. */
  readonly failing?: ReadonlySet<string>;
  /** Episodes, as `rollout/attempt`, of which something staged is missing. */
  readonly torn?: ReadonlySet<string>;
  /** How long a turn takes at most. Default: 20. */
  readonly turnMs?: number;
  /** Turns after which an episode waits for `letGo`. Default: none does. */
  readonly heldAfter?: number;
}

export class Episodes {
  /** Every dispatch that came, as `rollout/attempt`. */
  readonly dispatched: string[] = [];
  readonly live = new Map<string, LiveEpisode>();
  readonly #options: EpisodesOptions;
  readonly #tasks = new Map<string, string>();
  #closed = false;
  #heldAfter: number;
  /** Work that is on its way to the log. */
  readonly #working = new Set<Promise<void>>();

  constructor(options: EpisodesOptions) {
    this.#options = options;
    this.#heldAfter = options.heldAfter ?? Number.POSITIVE_INFINITY;
  }

  async serve(): Promise<void> {
    const { environment, run } = this.#options;
    await environment.connection.subscribe(seedSubject(run, "environment", "main"), async (message) => {
      const json = parseJson(message.data);
      const request = RunRequest.parse(json.ok ? json.value : undefined);
      this.dispatched.push(keyOf(request));
      const problem = await this.#take(request);
      message.respond(JSON.stringify(problem === undefined ? { ok: true, data: {} } : { ok: false, problem }));
    });
  }

  /** From here nothing new is taken, and nothing is said when this returns. */
  async close(): Promise<void> {
    this.#closed = true;
    while (this.#working.size > 0) await Promise.all(this.#working);
  }

  open(): void {
    this.#closed = false;
  }

  /** Episodes wait after so many turns, or not at all. */
  letGo(heldAfter = Number.POSITIVE_INFINITY): void {
    this.#heldAfter = heldAfter;
  }

  async #take({ rollout, attempt, policyVersion, task }: RunRequest) {
    if (this.#closed) return { code: "admission_closed" as const, message: "a checkpoint is open" };
    const known = this.live.get(rollout);
    if (known !== undefined && known.attempt !== attempt) {
      return { code: "session_conflict" as const, message: `attempt ${known.attempt} is there` };
    }
    const text = JSON.stringify(task);
    if ((this.#tasks.get(rollout) ?? text) !== text)
      return { code: "session_conflict" as const, message: "another task" };
    this.#tasks.set(rollout, text);
    if (known?.claimed === true) return undefined;
    const episode = { rollout, attempt, policyVersion, done: known?.done ?? 0, claimed: true };
    this.live.set(rollout, episode);
    const digest = sha256(text);
    const opened = {
      sessionId: `s-${rollout}`,
      task: { digest, bytes: text.length, text },
      agent: "main",
      resources: "main",
    };
    const data = { rollout, attempt, ...opened, budgetMs: null, policyVersion };
    await this.#work(
      async () => void (await this.#options.writers.environment.record([{ type: "episode.opened", data }])),
    );
    void this.#drive(episode).catch(() => {});
    return undefined;
  }

  /** One turn after the other, each as quick as the broker; held while closed. */
  async #drive({ rollout, attempt, policyVersion }: LiveEpisode): Promise<void> {
    const { turnMs = 20 } = this.#options;
    const pauses = seedFrom("pause", rollout, attempt);
    for (let step = 0; ; step++) {
      do await delay((seedFrom(pauses, step) % turnMs) + 1);
      while (this.#closed || (this.live.get(rollout)?.done ?? 0) >= this.#heldAfter);
      const now = this.live.get(rollout);
      if (now?.attempt !== attempt) return;
      if (now.done === turns) return this.#work(() => this.#end(now));
      await this.#work(async () => {
        await this.#call(now, policyVersion);
        const later = this.live.get(rollout);
        if (later?.attempt === attempt) this.live.set(rollout, { ...later, done: now.done + 1 });
      });
    }
  }

  async #call({ rollout, attempt, done: turn }: LiveEpisode, policyVersion: number): Promise<void> {
    const { model, writers } = this.#options;
    const policy = await this.#policyOf(policyVersion);
    const gradient = initialWeights().map((_, at) => (seedFrom(rollout, turn, policy, at) % 1000) / 1000 - 0.5);
    const text = JSON.stringify({ logprob: -1, gradient, choice: {} });
    const isTorn = turn === 1 && (this.#options.torn?.has(`${rollout}/${attempt}`) ?? false);
    const staging = isTorn ? "f".repeat(64) : await model.blobs.put(text);
    const digest = seedFrom(rollout, turn).toString(16).padStart(64, "0");
    const call = { rollout, attempt, turn };
    const response = { digest, bytes: 2, text: "{}" };
    const tokens = { promptTokens: 1, completionTokens: 1 };
    await writers.model.record([
      { type: "call.started", data: { ...call, request: digest, policyVersion } },
      { type: "call.finished", data: { ...call, request: digest, response, staging, policyVersion, ...tokens } },
      { type: "call.delivered", data: call },
    ]);
  }

  async #end({ rollout, attempt, policyVersion }: LiveEpisode): Promise<void> {
    const isFailing = this.#options.failing?.has(rollout) ?? false;
    const reward = isFailing ? null : (seedFrom("reward", rollout) % 5) / 4;
    const status = isFailing ? ("failed" as const) : ("finished" as const);
    const data = {
      rollout,
      attempt,
      sessionId: `s-${rollout}`,
      status,
      reward,
      verdict: null,
      chargedMs: 1,
      policyVersion,
    };
    await this.#options.writers.environment.end({ type: "episode.ended", data: { ...data, why: null } });
    if (this.live.get(rollout)?.attempt === attempt) this.live.delete(rollout);
  }

  /** The digest of the weights that were published as `version` last. */
  async #policyOf(version: number): Promise<string> {
    const { run, model } = this.#options;
    let digest = "";
    const upTo = await model.log.lastSequence();
    await model.log.read({ upTo, subjects: [filters.logsOf(run, "trainer")] }, (message) => {
      for (const { event } of decodeEvents(message, trainerEvents).events) {
        if (event.type === "policy.published" && event.data.version === version) digest = event.data.digest;
      }
    });
    if (digest === "") throw new Error(`policy ${version} was not published`);
    return digest;
  }

  #work(work: () => Promise<void>): Promise<void> {
    const working = work().finally(() => this.#working.delete(working));
    this.#working.add(working);
    return working;
  }
}

export function keyOf({ rollout, attempt }: Episode): string {
  return `${rollout}/${attempt}`;
}
