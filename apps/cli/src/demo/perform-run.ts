/** Runs the workload once from beginning to end, with or without chaos, and makes its record. */
import { type RunningBroker, startBroker } from "@holdpoint/broker";
import { HoldpointError } from "@holdpoint/errors";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { leftovers } from "../run/leftovers.ts";
import type { ProcessExit } from "../run/managed-process.ts";
import { ProcessGuard } from "../run/process-guard.ts";
import { isProcessName, processNames, RunProcesses } from "../run/run-processes.ts";
import { Chaos } from "./chaos.ts";
import { recordOf } from "./collect.ts";
import { Observer } from "./observer.ts";
import type { Progress } from "./progress.ts";
import type { RunRecord } from "./record.ts";
import type { PlannedKill } from "./schedule.ts";
import { readExecutionLog, readTrainer } from "./traces.ts";

/** Who is told how a run goes. */
interface RunView {
  progress(progress: Progress): void;
  tell(sentence: string): void;
}

export interface RunOptions {
  readonly name: string;
  /** Absolute; the run's own. */
  readonly folder: string;
  readonly seed: number;
  readonly rollouts: number;
  /** None: the run is not disturbed. */
  readonly plan: readonly PlannedKill[];
  /** Milliseconds between checkpoints; 0: none are taken. */
  readonly checkpointEveryMs: number;
  /** How long it may take. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  readonly view: RunView;
}

/** Of the subjects; both runs have a broker of their own. */
const runName = "demo";
const fencedCode = 3;

/**
 * Performs a run. Whatever happens, none of its processes is left when this returns or throws.
 *
 * @throws HoldpointError `unavailable` where the broker or a process cannot be started, `deadline_exceeded` where the run does not
 *   end in time; the signal's reason where it is aborted
 */
export async function performRun(options: RunOptions): Promise<RunRecord> {
  const guard = new ProcessGuard();
  const broker = await startBroker({
    storeDir: join(options.folder, "nats"),
    onProgress: (sentence) => options.view.tell(sentence),
  });
  const mark = randomBytes(8).toString("hex");
  const stage = new Stage(options, { guard, broker, mark });
  try {
    const record = await stage.perform();
    await stage.stop();
    return { ...record, exits: stage.exits, leftovers: await stage.leftovers(mark) };
  } finally {
    guard.close();
    await broker.stop();
  }
}

interface StageParts {
  readonly guard: ProcessGuard;
  readonly broker: RunningBroker;
  readonly mark: string;
}

/** More than any rollout takes: charges are compared, and none runs out. An unbounded episode would be charged nothing. */
const budgetMs = 3_600_000;

class Stage {
  readonly exits: ProcessExit[] = [];
  readonly #options: RunOptions;
  readonly #broker: RunningBroker;
  readonly #processes: RunProcesses;
  readonly #over = new AbortController();
  readonly #startedAtMs = Date.now();
  readonly #problems: string[] = [];
  #chaos: Chaos | undefined;

  constructor(options: RunOptions, { guard, broker, mark }: StageParts) {
    const { folder, seed, rollouts, checkpointEveryMs } = options;
    this.#options = options;
    this.#broker = broker;
    const trainer = {
      HOLDPOINT_SEED: String(seed),
      HOLDPOINT_ROLLOUTS: String(rollouts),
      HOLDPOINT_CHECKPOINT_EVERY_MS: String(checkpointEveryMs),
      HOLDPOINT_BUDGET_MS: String(budgetMs),
    };
    const onExit = (exit: ProcessExit) => this.#exited(exit);
    this.#processes = new RunProcesses({
      run: runName,
      folder,
      broker,
      guard,
      mark,
      settings: { trainer },
      onExit,
    });
  }

  async perform(): Promise<RunRecord> {
    const { plan, view } = this.#options;
    await this.#processes.prepare();
    await this.#processes.of("coordinator").start(); // it makes the stream that all others look for
    const observer = await Observer.open(this.#broker, runName, this.#over.signal).catch((error: unknown) => {
      throw this.#over.signal.aborted ? this.#failure() : error;
    });
    try {
      const { progress } = observer;
      progress.onChange((now) => view.progress(now));
      const parts = { plan, processes: this.#processes, broker: this.#broker, progress, over: this.#over.signal };
      this.#chaos = new Chaos({ ...parts, tell: (sentence) => view.tell(sentence) });
      for (const name of processNames.slice(1)) await this.#processes.of(name).start();
      await Promise.all([this.#chaos.run(), this.#untilOver()]);
      return await this.#record(observer);
    } finally {
      this.#over.abort();
      await observer.close();
    }
  }

  async stop(): Promise<void> {
    await this.#processes.stopAll();
    await this.#broker.stop();
  }

  leftovers(mark: string): Promise<readonly string[]> {
    const resources = this.#processes.stateDir("resources");
    return leftovers({
      mark,
      folder: this.#options.folder,
      empty: [
        { path: join(resources, "sandboxes"), what: "sandboxes" },
        { path: join(resources, "snapshots"), what: "snapshots" },
      ],
    });
  }

  /** Why the run cannot even begin. */
  #failure(): HoldpointError {
    const words = this.exits.map(({ process, lastWords }) => `${process} ended at its start: ${lastWords}`);
    return new HoldpointError("unavailable", words.join("\n"));
  }

  /** Returns once the trainer is done, or a process has failed. */
  async #untilOver(): Promise<void> {
    const { timeoutMs, signal, name } = this.#options;
    const limit = AbortSignal.any([signal, this.#over.signal]);
    await pause(timeoutMs, undefined, { signal: limit }).catch(() => undefined);
    signal.throwIfAborted();
    if (this.#over.signal.aborted) return;
    throw new HoldpointError("deadline_exceeded", `the run ${name} did not end within ${timeoutMs} ms`);
  }

  #exited(exit: ProcessExit): void {
    this.exits.push(exit);
    if (exit.cause !== "own") return;
    const goesOn = exit.code === fencedCode && exit.killedBefore > 0 && !this.#over.signal.aborted;
    if (goesOn) this.#startAgain(exit.process).catch((error: unknown) => this.#fail(error));
    else this.#over.abort();
  }

  async #startAgain(name: string): Promise<void> {
    if (!isProcessName(name)) return;
    const process = this.#processes.of(name);
    if (!process.isRunning) await process.start(this.#chaos?.extraFor(name));
  }

  #fail(error: unknown): void {
    this.#problems.push(error instanceof Error ? error.message : String(error));
    this.#over.abort();
  }

  async #record(observer: Observer): Promise<RunRecord> {
    const { name } = this.#options;
    const endedAtMs = Date.now();
    const trainer = await readTrainer(this.#processes.stateDir("trainer"));
    const observed = {
      name,
      startedAtMs: this.#startedAtMs,
      endedAtMs,
      exits: this.exits,
      leftovers: [],
      trainer: trainer.facts,
      problems: [...this.#problems, ...trainer.problems, ...observer.problems],
      kills: this.#chaos?.done ?? [],
      missedKills: this.#chaos?.missed ?? [],
    };
    const executions = await readExecutionLog(this.#processes.stateDir("resources"));
    return recordOf(observed, { ...(await observer.read()), executions });
  }
}
