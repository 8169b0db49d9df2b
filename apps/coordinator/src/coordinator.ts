/**
 * A coordinator: it follows the stream and stands by, leads when nobody else does, and stands by again when it was superseded.
 *
 * Any number of them may run. Safety never rests on who believes to lead: all that a leader appends expects the end of `control`
 * (L1, L11). That a leader is gone is only the reason to try.
 */
import type { EventLog } from "@holdpoint/eventsourcing";
import { setTimeout as pause } from "node:timers/promises";
import { Follower, type FollowerOptions } from "./follower.ts";
import type { LeaderSigns } from "./leader-signs.ts";
import { LeaderWatch, type Sign } from "./leader-watch.ts";
import { Leader, type LeaderOptions } from "./leader.ts";

export interface CoordinatorOptions extends FollowerOptions, LeaderOptions {
  readonly run: string;
  readonly log: EventLog;
  /** Unique for each life of the process. */
  readonly incarnation: string;
  readonly signs: LeaderSigns;
  /** Told of every sign of the one that leads, while another does. */
  readonly heard?: (leader: string, sign: Sign) => void;
  /** Told where it stands, at every change. */
  readonly stands?: (standing: Standing) => void;
}

/** `leader`: the incarnation that leads, by the log. */
interface Standing {
  readonly status: "leads" | "stands by" | "superseded";
  readonly leader: string | undefined;
}

/** Between two questions to the leader, and how much that varies, in milliseconds. */
const askEveryMs = 200;
const askSpreadMs = 100;
/** What an append that is on its way has to end in, once it is told to stop, in milliseconds. */
const stopPatienceMs = 2_000;

export class Coordinator {
  readonly #options: CoordinatorOptions;
  readonly #follower: Follower;
  readonly #watch: LeaderWatch;
  readonly #stopping = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #terms = 0;
  #leads = false;

  constructor(options: CoordinatorOptions) {
    this.#options = options;
    this.#follower = new Follower(options);
    this.#watch = new LeaderWatch({
      ask: (incarnation) => options.signs.ask(incarnation),
      leader: () => (this.#leads ? undefined : this.#follower.state.leader),
      gone: () => this.#follower.wake(),
      pauseMs: () => askEveryMs + Math.random() * askSpreadMs,
      ...(options.heard !== undefined && { heard: options.heard }),
    });
  }

  get state() {
    return this.#follower.state;
  }

  /** The sequence of the snapshot with which it began to fold; 0 where there was none. */
  get foldedFrom(): number {
    return this.#follower.from;
  }

  /** Stream time, epoch milliseconds. */
  get nowMs() {
    return this.#follower.nowMs;
  }

  /**
   * Folds the stream, then stands by and leads, until it is stopped.
   *
   * @throws HoldpointError whatever the log throws, `unauthorized` where the broker does not let it ask who leads
   */
  async run(): Promise<void> {
    this.#running = this.#run();
    await this.#running;
  }

  /** Ends `run`, after the append that is on its way. Where it leads, the log says that it does so no more. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#follower.wake();
    const ended = this.#running.catch(() => undefined); // thrown where it was started
    await Promise.race([ended, pause(stopPatienceMs, undefined, { ref: false })]);
    await this.#follower.halt();
    await ended;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    try {
      const watching = this.#watch.run(signal).then(() => new Promise<never>(() => {})); // ends this only where it fails
      await Promise.race([this.#follow(signal), watching]);
    } catch (error) {
      if (!this.#follower.halted.aborted) throw error;
    }
  }

  async #follow(signal: AbortSignal): Promise<void> {
    await this.#follower.start();
    let toldOf: string | undefined;
    while (!signal.aborted) {
      const { leader } = this.#follower.state;
      if (!this.#isVacant() && leader !== toldOf) this.#options.stands?.({ status: "stands by", leader });
      toldOf = leader;
      if (!this.#isVacant()) await this.#follower.changed();
      else await this.#stepIn(signal);
    }
  }

  /** Whether nobody leads, as far as is known. */
  #isVacant(): boolean {
    const { leader } = this.#follower.state;
    return leader === undefined || this.#watch.isGone(leader);
  }

  /** Leads for a term, unless somebody else is quicker, or has been meanwhile. */
  async #stepIn(signal: AbortSignal): Promise<void> {
    await this.#follower.caughtUp(await this.#options.log.lastSequence());
    if (signal.aborted || !this.#isVacant()) return;
    const { controlSequence } = this.#follower.state; // what follows needs time, and somebody else may be quicker
    const { incarnation, signs } = this.#options;
    this.#terms += 1;
    const own = this.#terms === 1 ? incarnation : `${incarnation}-${this.#terms}`;
    const answering = await signs.answer(own); // before it leads, so that nobody finds it gone meanwhile
    try {
      const leader = new Leader(this.#options, this.#follower, own);
      this.#leads = await leader.takeOver(controlSequence);
      if (this.#leads) await this.#lead(leader, signal);
    } finally {
      this.#leads = false;
      answering.stop();
    }
  }

  async #lead(leader: Leader, signal: AbortSignal): Promise<void> {
    const { stands } = this.#options;
    stands?.({ status: "leads", leader: this.#follower.state.leader });
    if ((await leader.lead(signal)) === "stopped") return;
    await this.#follower.caughtUp(await this.#options.log.lastSequence());
    stands?.({ status: "superseded", leader: this.#follower.state.leader });
  }
}
