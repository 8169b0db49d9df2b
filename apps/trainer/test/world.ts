/** A run without processes: what a trainer's decisions do to a log, under crashes and restores in any order. */
import type { Recorded } from "@holdpoint/eventsourcing";
import { weightsDigest, seedFrom } from "@holdpoint/repair";
import type { ControlEvent, Episode, EpisodeStatus } from "@holdpoint/schemas";
import type * as z from "zod";
import { ControlHistory } from "../src/control-history.ts";
import { learnt, teaching } from "../src/learn.ts";
import {
  groupsOf,
  type KnownRollout,
  nextStep,
  ordersOf,
  sendable,
  type Situation,
  wayBack,
} from "../src/next-step.ts";
import { consumed, type EpisodeResult, firstState, type RunPlan, type TrainerState, withGroup } from "../src/state.ts";

const stream = "HP_world";
export const worldPlan: RunPlan = { run: "world", seed: 7, rollouts: 15, siblings: 3, policyLag: 1 };
export const worldGroups = groupsOf(worldPlan);

interface Live extends Episode {
  readonly policyVersion: number;
  /** Of the weights that it was sampled with. */
  readonly policy: string;
  /** Nobody has dispatched this continuation yet. */
  readonly claimed: boolean;
}

interface Saved {
  readonly state: TrainerState;
  readonly cut: number;
  readonly scope: readonly Live[];
}

/** What the world draws its accidents from: whole numbers. */
export interface WorldOptions {
  readonly plan?: RunPlan;
  /** Rollouts that end otherwise than finished. */
  readonly failing?: ReadonlySet<string>;
  /** Episodes, as `rollout/attempt`, that lack a staged blob. */
  readonly torn?: ReadonlySet<string>;
  /** Whether another attempt at a rollout may get another reward. Default: false. */
  readonly fickle?: boolean;
}

export class World {
  readonly plan: RunPlan;
  readonly #groups: ReturnType<typeof groupsOf>;
  readonly #options: WorldOptions;
  readonly #control: Recorded<ControlEvent>[] = [];
  readonly #results: (EpisodeResult & { readonly policy: string })[] = [];
  readonly #opened = new Map<string, number>();
  readonly #live = new Map<string, Live>();
  readonly #policies = new Map<number, string>();
  #sequence = 0;
  #history = new ControlHistory(stream);
  /** What the log shows as opened. */
  readonly #taken = new Set<string>();
  #state: TrainerState;
  #durable: TrainerState;
  #checkpoints: Saved[] = [];

  constructor(options: WorldOptions = {}) {
    this.#options = options;
    this.plan = options.plan ?? worldPlan;
    this.#groups = options.plan === undefined ? worldGroups : groupsOf(options.plan);
    this.#state = firstState(this.plan);
    this.#durable = this.#state;
    this.#publish();
  }

  get state(): TrainerState {
    return this.#state;
  }

  /** Episodes in the weights that were sampled with other weights than the plan pins them to. */
  get strays(): readonly string[] {
    return this.#groups.flatMap(({ policyVersion }, index) => {
      const policy = this.#policies.get(policyVersion);
      const trained = new Set(this.#state.groups[index]?.episodes.map(key));
      return this.#results.filter((result) => trained.has(key(result)) && result.policy !== policy).map(key);
    });
  }

  get isDone(): boolean {
    return nextStep(this.#situation).type === "done";
  }

  dispatch(): void {
    for (const order of sendable(ordersOf(this.#situation), (episode) => this.#taken.has(key(episode)))) {
      this.#taken.add(key(order));
      const { rollout, attempt, group, continued } = order;
      const live = this.#live.get(rollout);
      if (live !== undefined && live.attempt !== attempt) throw new Error(`${key(order)} beside ${key(live)}`);
      if (live !== undefined) {
        this.#live.set(rollout, { ...live, claimed: true });
        this.#opened.set(rollout, attempt);
        continue;
      }
      if (continued) throw new Error(`${key(order)} was not installed`);
      if ((this.#opened.get(rollout) ?? -1) >= attempt) throw new Error(`${key(order)} has ended`);
      const policy = this.#policies.get(group.policyVersion) ?? "";
      this.#live.set(rollout, { rollout, attempt, policyVersion: group.policyVersion, policy, claimed: true });
      this.#opened.set(rollout, attempt);
    }
  }

  /** One of the live episodes ends. */
  end(choice: number): void {
    const running = [...this.#live.values()].filter(({ claimed }) => claimed);
    const live = running[choice % Math.max(1, running.length)];
    if (live === undefined) return;
    this.#live.delete(live.rollout);
    const salt = this.#options.fickle === true ? live.attempt : 0;
    const status = (this.#options.failing?.has(live.rollout) ?? false) ? "failed" : "finished";
    const together = choice % 3 === 0 && this.#results.at(-1)?.sequence === this.#sequence; // of one message
    if (!together || this.#state.cursor === this.#sequence) this.#sequence += 1;
    const sequence = this.#sequence;
    this.#results.push({ ...live, ...outcome(`${live.rollout} ${salt}`, status), sequence });
  }

  /** The trainer looks at the next result that it has not seen. */
  consume(): void {
    const next = this.#results.find(({ sequence }) => sequence > this.#state.cursor);
    if (next === undefined) return;
    const { sequence } = next;
    const results = this.#results.filter((result) => result.sequence === sequence);
    this.#state = consumed(this.#state, { sequence, anchor: "0".repeat(64), results });
  }

  save(): void {
    this.#durable = this.#state;
  }

  /** Trains the next group, if it can. */
  train(): void {
    const step = nextStep(this.#situation);
    if (step.type !== "train") return;
    const torn = step.results.filter((result) => this.#options.torn?.has(key(result)) ?? false);
    if (torn.length > 0) return this.#mark(torn);
    const rollouts = teaching(step.results).map(({ rollout, attempt, reward }) => ({
      rolloutId: rollout,
      reward: reward ?? 0,
      gradients: [this.#gradient({ rollout, attempt })],
    }));
    const weights = learnt(this.#state.weights, rollouts);
    this.#state = withGroup(this.#state, {
      group: step.group.groupId,
      results: step.results,
      weights,
      policy: "0".repeat(64),
    });
    this.#publish();
    this.save();
  }

  /** The trainer alone dies. */
  crash(): void {
    this.#state = this.#durable;
    this.#fold();
    this.#catchUp();
  }

  checkpoint(): void {
    this.save();
    this.#checkpoints.push({ state: this.#state, cut: ++this.#sequence, scope: [...this.#live.values()] });
  }

  /** Everything dies; the trainer goes back to one of the two latest checkpoints. */
  restore(choice: number): void {
    const saved = this.#checkpoints.slice(-2)[choice % 2];
    if (saved === undefined) return;
    this.#state = saved.state;
    this.#fold();
    const { retired, restored } = wayBack(this.#situation, saved.scope, this.#known());
    this.#mark(retired);
    const assignments = restored.map((rollout) => {
      const from = saved.scope.find((live) => live.rollout === rollout)?.attempt ?? 0;
      return { rollout, from, to: this.#history.attemptOf(rollout) };
    });
    if (this.#live.size > 0) throw new Error(`live at a restore: ${[...this.#live.keys()].join(" ")}`);
    const ids = { command: 1, checkpointId: `r${this.#sequence}`, source: "c1" };
    this.#say({ type: "restore.started", data: { ...ids, cut: { [stream]: saved.cut }, assignments } });
    this.#say({ type: "restore.installed", data: { ...ids, receipt: [] } });
    for (const { rollout, to } of assignments) {
      const from = saved.scope.find((live) => live.rollout === rollout);
      if (from !== undefined) this.#live.set(rollout, { ...from, attempt: to, claimed: false });
    }
    this.save();
    this.#catchUp();
  }

  /** Without accidents from here to the end. */
  finish(): void {
    for (let round = 0; !this.isDone; round++) {
      if (round > 10_000) throw new Error("the run does not end");
      this.round(0);
    }
  }

  /** Everything goes on a little. */
  round(choice: number): void {
    this.dispatch();
    this.end(choice);
    this.consume();
    this.train();
  }

  get #situation(): Situation {
    return { groups: this.#groups, state: this.#state, attempts: this.#history };
  }

  /** Before it dispatches anything a trainer looks at every result that there is. What was opened it finds in the log. */
  #catchUp(): void {
    for (const _ of this.#results) this.consume();
  }

  #fold(): void {
    this.#history = new ControlHistory(stream);
    for (const recorded of this.#control) this.#history.apply(recorded);
  }

  #known(): ReadonlyMap<string, KnownRollout> {
    return new Map(
      [...this.#opened].map(([rollout, highest]) => {
        return [rollout, { highest, results: this.#results.filter((result) => result.rollout === rollout) }];
      }),
    );
  }

  #mark(rollouts: readonly Episode[]): void {
    if (rollouts.length === 0) return;
    const marks = rollouts.map(({ rollout, attempt }) => ({ rollout, attempt }));
    this.#say({ type: "rollouts.marked", data: { command: 1, rollouts: marks } });
    for (const { rollout, attempt } of marks) {
      if ((this.#live.get(rollout)?.attempt ?? Number.POSITIVE_INFINITY) <= attempt) this.#live.delete(rollout);
    }
  }

  #say(event: ControlEvent): void {
    const sequence = ++this.#sequence;
    const recorded = { event, sequence, index: 0, subject: "hp.world.control", timeMs: 0, incarnation: "world" };
    this.#control.push(recorded);
    this.#history.apply(recorded);
  }

  #publish(): void {
    this.#policies.set(this.#state.version, weightsDigest(this.#state.weights));
  }

  /** What was learnt from an episode: its rollout and its policy decide, never its attempt. */
  #gradient({ rollout, attempt }: Episode): readonly number[] {
    const result = this.#results.find((other) => other.rollout === rollout && other.attempt === attempt);
    const seed = seedFrom(rollout, result?.policy ?? "none");
    return this.#state.weights.map((_, at) => (seedFrom(seed, at) % 1000) / 1000 - 0.5);
  }
}

function outcome(rollout: string, status: z.infer<typeof EpisodeStatus>) {
  const reward = status === "finished" ? (seedFrom("reward", rollout) % 5) / 4 : null;
  return { status, reward };
}

function key({ rollout, attempt }: Episode): string {
  return `${rollout}/${attempt}`;
}
