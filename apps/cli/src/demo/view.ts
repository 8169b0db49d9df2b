/** Live progress of the runs: bars that are drawn over on a terminal, plain lines elsewhere. */
import type { Progress } from "./progress.ts";

/** Where progress is written to; a terminal, or anything else that takes text. */
export interface Screen {
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  write(text: string): unknown;
}

export interface View {
  /** What follows is about the run `name` of `rollouts`. */
  begin(name: string, rollouts: number): void;
  progress(progress: Progress): void;
  /** A sentence that stays. */
  tell(sentence: string): void;
  /** The last word: nothing is drawn over any more. */
  end(): void;
}

export function viewOn(screen: Screen, now: () => number = Date.now): View {
  return screen.isTTY === true ? new Bars(screen, now) : new Lines(screen, now);
}

const drawEveryMs = 100;
const lineEveryMs = 5_000;
const barCells = 24;
const nothing: Progress = {
  calls: 0,
  tools: 0,
  opened: 0,
  finished: 0,
  checkpoints: 0,
  restorable: 0,
  restores: 0,
  groups: 0,
  isClosed: false,
};

interface RunState {
  readonly name: string;
  readonly rollouts: number;
  readonly sinceMs: number;
  progress: Progress;
  /** null: it is going on. */
  tookMs: number | null;
}

/** One bar for each run, at the bottom of what has been written. */
class Bars implements View {
  readonly #screen: Screen;
  readonly #now: () => number;
  readonly #runs: RunState[] = [];
  #drawn = 0;
  #drawnAtMs = 0;

  constructor(screen: Screen, now: () => number) {
    this.#screen = screen;
    this.#now = now;
  }

  begin(name: string, rollouts: number): void {
    this.#finish();
    this.#runs.push({ name, rollouts, sinceMs: this.#now(), progress: nothing, tookMs: null });
    this.#draw();
  }

  progress(progress: Progress): void {
    const run = this.#runs.at(-1);
    if (run === undefined) return;
    run.progress = progress;
    if (this.#now() - this.#drawnAtMs >= drawEveryMs) this.#draw();
  }

  tell(sentence: string): void {
    this.#clear();
    this.#screen.write(`${sentence}\n`);
    this.#draw();
  }

  end(): void {
    this.#finish();
    this.#draw();
    this.#drawn = 0;
  }

  #finish(): void {
    const run = this.#runs.at(-1);
    if (run !== undefined) run.tookMs ??= this.#now() - run.sinceMs;
  }

  #draw(): void {
    this.#clear();
    const width = (this.#screen.columns ?? 80) - 1;
    const lines = this.#runs.map((run) => `${barOf(run, this.#now()).slice(0, width)}\n`);
    this.#screen.write(lines.join(""));
    this.#drawn = lines.length;
    this.#drawnAtMs = this.#now();
  }

  /** Goes up over the bars and wipes all below. */
  #clear(): void {
    if (this.#drawn > 0) this.#screen.write(`\u001B[${this.#drawn}A\u001B[J`);
    this.#drawn = 0;
  }
}

function barOf(run: RunState, nowMs: number): string {
  const { finished } = run.progress;
  const full = Math.round((finished / run.rollouts) * barCells);
  const bar = "█".repeat(full) + "░".repeat(barCells - full);
  return `${run.name.padEnd(6)} ${bar} ${describe(run, nowMs)}`;
}

function describe({ rollouts, progress, sinceMs, tookMs }: RunState, nowMs: number): string {
  const { finished, calls, checkpoints, restores, isClosed } = progress;
  const parts = [
    `${String(finished).padStart(String(rollouts).length)}/${rollouts} rollouts`,
    `${calls} calls`,
    ...(checkpoints > 0 ? [`${checkpoints} checkpoints`] : []),
    ...(restores > 0 ? [`${restores} restores`] : []),
    `${Math.round((tookMs ?? nowMs - sinceMs) / 1000)} s`,
    ...(isClosed && tookMs === null ? ["held"] : []),
  ];
  return parts.join("  ");
}

/** A line when a rollout has finished, and now and then between. */
class Lines implements View {
  readonly #screen: Screen;
  readonly #now: () => number;
  #run: RunState | undefined;
  #saidAtMs = 0;
  #saidFinished = 0;

  constructor(screen: Screen, now: () => number) {
    this.#screen = screen;
    this.#now = now;
  }

  begin(name: string, rollouts: number): void {
    this.#run = { name, rollouts, sinceMs: this.#now(), progress: nothing, tookMs: null };
    this.#saidFinished = 0;
    this.#saidAtMs = this.#now();
    this.tell(`run ${name}: ${rollouts} rollouts`);
  }

  progress(progress: Progress): void {
    if (this.#run === undefined) return;
    this.#run.progress = progress;
    const isNews = progress.finished > this.#saidFinished || this.#now() - this.#saidAtMs >= lineEveryMs;
    if (!isNews) return;
    this.#saidFinished = Math.max(this.#saidFinished, progress.finished);
    this.#saidAtMs = this.#now();
    this.tell(`${this.#run.name}: ${describe(this.#run, this.#now()).trim()}`);
  }

  tell(sentence: string): void {
    this.#screen.write(`${sentence}\n`);
  }

  end(): void {
    this.#run = undefined;
  }
}
