/**
 * The trainer: one loop that looks at what is there and does the next thing.
 *
 *  1. An effect is said on the log, then saved, then acknowledged (L12). So a successor fences this process before it can save
 *     what would not count, and what was said and not saved is done again, to the same.
 *  2. Nothing is dispatched, trained or saved while a checkpoint is taken.
 */
import { initialWeights, weightsDigest } from "@holdpoint/repair";
import { begunCheckpoint, releaseOwn, takeCheckpoint } from "./checkpointing.ts";
import { attempt, resumeLeftOpen, timeoutOf } from "./commanding.ts";
import type { Consumption } from "./consumption.ts";
import type { TrainerContext } from "./context.ts";
import type { Dispatcher } from "./dispatcher.ts";
import { checkpointDue, nextStep, ordersOf, sendable, type Situation } from "./next-step.ts";
import { type Publications, sayingOf } from "./publications.ts";
import { consumed, type TrainerState } from "./state.ts";
import type { Final } from "./state-dir.ts";
import { Training } from "./training.ts";

export interface TrainerParts {
  readonly context: TrainerContext;
  readonly dispatcher: Dispatcher;
  readonly consumption: Consumption;
  readonly publications: Publications;
  readonly state: TrainerState;
  /** Milliseconds of a clock that only moves on. */
  readonly clock: () => number;
}

export class Trainer {
  readonly #parts: TrainerParts;
  readonly #context: TrainerContext;
  readonly #training: Training;
  #state: TrainerState;
  #lastCheckpointAtMs: number;
  /** Where the stream ended after the last checkpoint. */
  #quietAt = 0;
  #trainedSince = false;

  constructor(parts: TrainerParts) {
    this.#parts = parts;
    this.#context = parts.context;
    this.#training = new Training(parts.context);
    this.#state = parts.state;
    this.#lastCheckpointAtMs = parts.clock();
  }

  /**
   * Trains every group of the plan.
   *
   * @throws HoldpointError where an invariant is broken
   */
  async run(): Promise<Final> {
    await this.#publish();
    while (nextStep(this.#situation).type !== "done") await this.#once();
    await this.#parts.dispatcher.close();
    return this.#finish();
  }

  get #situation(): Situation {
    const { groups, view } = this.#context;
    return { groups, state: this.#state, attempts: view.history };
  }

  async #once(): Promise<void> {
    const { view } = this.#context;
    const { changes } = view;
    await resumeLeftOpen(this.#context);
    await this.#takeIn();
    const step = nextStep(this.#situation);
    if (step.type === "train") return this.#train(step);
    if (await this.#isCheckpointDue()) return this.#checkpoint();
    const { dispatcher } = this.#parts;
    dispatcher.send(sendable(ordersOf(this.#situation), (episode) => dispatcher.isTaken(episode)));
    await this.#untilNews(changes);
  }

  /** Looks at the results that have come, and saves that. */
  async #takeIn(): Promise<void> {
    const found = this.#context.view.resultsAfter(this.#state.cursor);
    for (const message of found) this.#state = consumed(this.#state, message);
    if (found.length > 0) await this.#save();
  }

  async #save(): Promise<void> {
    await this.#context.dir.save(this.#state);
    this.#parts.consumption.settle(this.#state.cursor);
  }

  async #train(step: ReturnType<typeof nextStep> & { type: "train" }): Promise<void> {
    const trained = await this.#training.train(this.#state, step);
    if (trained === undefined) return;
    this.#state = trained;
    await this.#publish();
    await this.#save();
    this.#trainedSince = true;
    const { version, cursor } = trained;
    this.#context.logger.info({ group: step.group.groupId, version, cursor }, "group trained");
  }

  /** Says what the log does not say already of the weights that there are. */
  async #publish(): Promise<void> {
    const { context, publications } = this.#parts;
    const untrained = await context.blobs.put(JSON.stringify(initialWeights()));
    const missing = publications.missing(sayingOf(this.#state, untrained));
    if (missing.length === 0) return;
    await context.say(missing);
    for (const event of missing) publications.add(event);
  }

  async #isCheckpointDue(): Promise<boolean> {
    const clock = {
      nowMs: this.#parts.clock(),
      lastAtMs: this.#lastCheckpointAtMs,
      everyMs: this.#context.settings.HOLDPOINT_CHECKPOINT_EVERY_MS,
      trained: this.#trainedSince,
      running: ordersOf(this.#situation).some((order) => this.#parts.dispatcher.isTaken(order)),
    };
    if (!checkpointDue(this.#situation, { ...clock, moved: true })) return false;
    const moved = (await this.#context.log.lastSequence()) > this.#quietAt;
    if (!moved) this.#lastCheckpointAtMs = clock.nowMs;
    return checkpointDue(this.#situation, { ...clock, moved });
  }

  async #checkpoint(): Promise<void> {
    await this.#parts.dispatcher.close();
    await this.#takeIn();
    this.#state = begunCheckpoint(this.#context, this.#state);
    await this.#save();
    await takeCheckpoint(this.#context, this.#state);
    this.#trainedSince = false;
    this.#quietAt = await this.#context.log.lastSequence();
    this.#lastCheckpointAtMs = this.#parts.clock();
  }

  /** Returns when something was followed since `changes`, or the time for a checkpoint has come. */
  async #untilNews(changes: number): Promise<void> {
    const { view, settings } = this.#context;
    const everyMs = settings.HOLDPOINT_CHECKPOINT_EVERY_MS;
    const leftMs = Math.max(0, this.#lastCheckpointAtMs + everyMs - this.#parts.clock());
    const due = everyMs === 0 ? undefined : AbortSignal.timeout(Math.ceil(leftMs) + 1);
    await view
      .until(() => view.changes !== changes, due)
      .catch((error: unknown) => {
        if (due?.aborted !== true) throw error;
      });
  }

  async #finish(): Promise<Final> {
    const { weights, version, groups } = this.#state;
    await this.#save();
    await releaseOwn(this.#context, this.#state);
    await this.#forget();
    const final = {
      weightsDigest: weightsDigest(weights),
      weights,
      version,
      groups: groups.map(({ cursor: _, policy: __, ...group }) => group),
    };
    await this.#context.dir.saveFinal(final);
    return final;
  }

  /** Nothing of the run can run any more: what is refused of it needs no mark. Best effort. */
  async #forget(): Promise<void> {
    const { groups, view } = this.#context;
    const marked = groups
      .flatMap(({ rollouts }) => rollouts.map(({ rolloutId }) => rolloutId))
      .filter((rollout) => view.history.attemptOf(rollout) > 0);
    if (marked.length === 0) return;
    await attempt(this.#context, { operation: "forget", rollouts: marked, timeoutMs: timeoutOf(this.#context) });
  }
}
