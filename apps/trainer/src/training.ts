/** Training one group: from its results and the logs to weights, or to the episodes that have to run again. */
import { HoldpointError } from "@holdpoint/errors";
import { sha256 } from "@holdpoint/participant";
import { setTimeout as delay } from "node:timers/promises";
import { attempt, pauseMs, resumeLeftOpen, timeoutOf } from "./commanding.ts";
import type { TrainerContext } from "./context.ts";
import { type Lesson, learnt, readLesson, teaching } from "./learn.ts";
import { readRows } from "./ledger-rows.ts";
import type { Step } from "./next-step.ts";
import { type TrainerState, withGroup } from "./state.ts";

type TrainStep = Step & { readonly type: "train" };

/** How many episodes of one rollout may turn out incomplete before that is no accident. */
const most = 5;

export class Training {
  readonly #context: TrainerContext;
  /** For each rollout, in this life of the process. */
  readonly #incomplete = new Map<string, number>();

  constructor(context: TrainerContext) {
    this.#context = context;
  }

  /**
   * The state after the group was trained; undefined where episodes of it are incomplete: they are retired then, and run again.
   *
   * @throws HoldpointError `invalid_checkpoint_state` where a rollout turns out incomplete again and again
   */
  async train(state: TrainerState, step: TrainStep): Promise<TrainerState | undefined> {
    const { group, results } = step;
    const lesson = await this.#lesson(state, step);
    if (!lesson.complete) {
      await this.#giveUp(lesson);
      return undefined;
    }
    const weights = learnt(state.weights, lesson.rollouts);
    const policy = await this.#context.blobs.put(JSON.stringify(weights));
    return withGroup(state, { group: group.groupId, results, weights, policy });
  }

  async #lesson(state: TrainerState, { results }: TrainStep): Promise<Lesson> {
    const { log, run, view, blobs } = this.#context;
    const taught = teaching(results);
    if (taught.length === 0) return { complete: true, rollouts: [] };
    const paths = taught.map(({ rollout, attempt: at }) => {
      return { rollout, attempt: at, path: view.history.pathOf({ rollout, attempt: at }) };
    });
    const from = Math.min(...taught.map(({ rollout }) => view.openedAt(rollout)));
    const upTo = Math.max(...taught.map(({ sequence }) => sequence));
    const rows = await readRows({ log, run, hash: sha256 }, paths, { from, upTo });
    const trajectories = taught.map((result, index) => ({ ...result, rows: rows[index] ?? [] }));
    return readLesson(blobs, trajectories, state.weights.length);
  }

  /** Retires incomplete episodes; returns when they count no more. */
  async #giveUp({ incomplete }: Lesson & { complete: false }): Promise<void> {
    const { view, logger } = this.#context;
    for (const { rollout, attempt: at } of incomplete) {
      const count = (this.#incomplete.get(rollout) ?? 0) + 1;
      this.#incomplete.set(rollout, count);
      if (count > most) throw alwaysIncomplete(rollout, count);
      logger.warn({ rollout, attempt: at }, "the ledger is incomplete: the rollout runs again");
    }
    const marks = [...incomplete];
    const isVoid = () => marks.every(({ rollout, attempt: at }) => view.history.attemptOf(rollout) > at);
    while (!isVoid()) {
      await resumeLeftOpen(this.#context);
      const command = { operation: "retire", rollouts: marks, timeoutMs: timeoutOf(this.#context) } as const;
      if ((await attempt(this.#context, command)) === undefined) await delay(pauseMs);
      else await view.until(isVoid);
    }
  }
}

function alwaysIncomplete(rollout: string, count: number): HoldpointError {
  return new HoldpointError(
    "invalid_checkpoint_state",
    `${count} episodes of ${rollout} had rows without what was staged for them: look at the model server, which stages it`,
    { details: { rollout, count } },
  );
}
