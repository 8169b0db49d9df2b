/** Carries out the planned kills of a run, in their order, and notes what was done when. */
import type { RunningBroker } from "@holdpoint/broker";
import { setTimeout as pause } from "node:timers/promises";
import { processNames, type ProcessName, type RunProcesses } from "../run/run-processes.ts";
import type { Progress, ProgressFold } from "./progress.ts";
import type { KillFacts } from "./record.ts";
import type { PlannedKill, Victim } from "./schedule.ts";

export type Kill = Omit<KillFacts, "hit">;

export interface ChaosOptions {
  readonly plan: readonly PlannedKill[];
  readonly processes: RunProcesses;
  readonly broker: RunningBroker;
  readonly progress: ProgressFold;
  /** Aborted when the run is over: what is still planned was missed. */
  readonly over: AbortSignal;
  /** Told in a sentence of each kill. */
  readonly tell: (sentence: string) => void;
}

/** A trainer that is started like this goes back to its latest checkpoint, and restores the rollouts from it. */
const restoreLatest = { HOLDPOINT_RESTORE: "latest" } as const;

export class Chaos {
  readonly done: Kill[] = [];
  readonly missed: PlannedKill[] = [];
  readonly #options: ChaosOptions;
  /** Restores installed when everything was last killed: until there are more, a trainer has to restore. */
  #restoresBefore = -1;

  constructor(options: ChaosOptions) {
    this.#options = options;
  }

  /** Returns when every kill is done or was missed, and all that was killed runs again. */
  async run(): Promise<void> {
    for (const planned of this.#options.plan) {
      if (await this.#isDue(planned)) this.done.push(await this.#kill(planned));
      else this.missed.push(planned);
    }
  }

  /** What a successor of a killed or fenced process is told beside its usual settings. */
  extraFor(name: ProcessName): Readonly<Record<string, string>> {
    const mustRestore = this.#options.progress.now.restores <= this.#restoresBefore;
    return name === "trainer" && mustRestore ? restoreLatest : {};
  }

  async #isDue({ victim, afterCalls, delayMs }: PlannedKill): Promise<boolean> {
    const { progress, over } = this.#options;
    // Each loss of everything has a restore of its own: the next one waits for it.
    const isTime = ({ calls, restorable, restores }: Progress) =>
      calls >= afterCalls && (victim !== "everything" || (restorable > 0 && restores > this.#restoresBefore));
    try {
      do {
        await progress.until(isTime, over);
        await pause(delayMs, undefined, { signal: over });
      } while (!isTime(progress.now));
      return true;
    } catch {
      return false;
    }
  }

  async #kill(planned: PlannedKill): Promise<Kill> {
    const { victim } = planned;
    const { calls } = this.#options.progress.now;
    this.#options.tell(`kill -9 of ${victim} after ${calls} model calls`);
    const targets = victim === "everything" ? [...processNames, "broker" as const] : [victim];
    const processes = targets.flatMap((name) => this.#known(name));
    const atMs = Date.now();
    if (victim === "everything") this.#restoresBefore = this.#options.progress.now.restores;
    await Promise.all(targets.map((name) => this.#end(name)));
    await pause(planned.downMs);
    if (targets.includes("broker")) await this.#options.broker.restart();
    for (const name of processNames) if (targets.includes(name)) await this.#startAgain(name);
    return { planned, atMs, calls, processes, backAtMs: Date.now() };
  }

  #known(name: Victim): readonly { name: string; pid: number }[] {
    const pid = name === "broker" ? this.#options.broker.pid : this.#options.processes.of(name).pid;
    return pid === 0 ? [] : [{ name, pid }];
  }

  async #end(name: Victim): Promise<void> {
    if (name === "broker") return this.#options.broker.kill();
    const process = this.#options.processes.of(name);
    process.kill();
    await process.exited();
  }

  async #startAgain(name: ProcessName): Promise<void> {
    const process = this.#options.processes.of(name);
    if (!process.isRunning) await process.start(this.extraFor(name));
  }
}
