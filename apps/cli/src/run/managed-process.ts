/** One process that we run: started, killed, started again, stopped; with what became of each of its lives. */
import { HoldpointError } from "@holdpoint/errors";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { killGroup, type ProcessGuard } from "./process-guard.ts";

/** Why a life ended: killed by us, told to stop by us, or by itself. */
export type EndCause = "killed" | "stopped" | "own";

/** How one life of a process ended. */
export interface ProcessExit {
  readonly process: string;
  readonly pid: number;
  readonly atMs: number;
  readonly code: number | null;
  readonly signal: string | null;
  readonly cause: EndCause;
  /** Lives of it that we had killed before. */
  readonly killedBefore: number;
  /** The end of what it printed, where it ended by itself and not well. */
  readonly lastWords: string;
}

export interface ProcessOptions {
  readonly name: string;
  /** A file that Node runs. */
  readonly program: string;
  /** All of its environment. */
  readonly env: Readonly<Record<string, string>>;
  /** Takes what all its lives print. */
  readonly logFile: string;
  readonly guard: ProcessGuard;
  readonly onExit: (exit: ProcessExit) => void;
}

interface Life {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly exited: Promise<void>;
}

export class ManagedProcess {
  readonly name: string;
  readonly #options: ProcessOptions;
  #life: Life | undefined;
  #cause: EndCause = "own";
  #killed = 0;

  constructor(options: ProcessOptions) {
    this.name = options.name;
    this.#options = options;
  }

  get isRunning(): boolean {
    return this.#life !== undefined;
  }

  /** Of the present life; 0 where there is none. */
  get pid(): number {
    return this.#life?.pid ?? 0;
  }

  /**
   * Starts it; whether it serves is another question.
   *
   * @param extra variables for this life alone
   * @throws HoldpointError `unavailable` where it cannot be run, `invalid_phase` where it runs
   */
  async start(extra: Readonly<Record<string, string>> = {}): Promise<void> {
    if (this.#life !== undefined) throw new HoldpointError("invalid_phase", `${this.name} is running already`);
    const { program, env, logFile } = this.#options;
    const log = openSync(logFile, "a", 0o600);
    const child = spawn(process.execPath, [program], {
      env: { ...env, ...extra },
      stdio: ["ignore", log, log],
      detached: true,
    });
    closeSync(log);
    await spawned(child, program);
    this.#begin(child, child.pid ?? 0);
  }

  /** Sends SIGKILL to it and all that it started in its group, as a crash would. Harmless where it is down. */
  kill(): void {
    if (this.#life === undefined) return;
    this.#cause = "killed";
    killGroup(this.#life.pid);
  }

  /** Asks it to end, and kills it after `patienceMs`. */
  async stop(patienceMs: number): Promise<void> {
    const life = this.#life;
    if (life === undefined) return;
    this.#cause = "stopped";
    life.child.kill("SIGTERM");
    const timer = setTimeout(() => killGroup(life.pid), patienceMs);
    await life.exited;
    clearTimeout(timer);
  }

  /** Returns once the present life is over. */
  async exited(): Promise<void> {
    await this.#life?.exited;
  }

  #begin(child: ChildProcess, pid: number): void {
    this.#cause = "own";
    this.#options.guard.add(pid);
    const exited = new Promise<void>((resolve) => {
      child.once("exit", (code, signal) => {
        this.#end(pid, { code, signal });
        resolve();
      });
    });
    this.#life = { child, pid, exited };
  }

  #end(pid: number, { code, signal }: Pick<ProcessExit, "code" | "signal">): void {
    killGroup(pid); // what it started is of no use without it
    this.#options.guard.remove(pid);
    this.#life = undefined;
    const cause = this.#cause;
    const killedBefore = this.#killed;
    if (cause === "killed") this.#killed += 1;
    const lastWords = cause === "own" && code !== 0 ? endOf(this.#options.logFile) : "";
    this.#options.onExit({ process: this.name, pid, atMs: Date.now(), code, signal, cause, killedBefore, lastWords });
  }
}

/** Characters of the end of a log that are repeated. */
const quotedCharacters = 2_000;

function endOf(logFile: string): string {
  try {
    return readFileSync(logFile, "utf8").trim().slice(-quotedCharacters);
  } catch {
    return ""; // a device, or gone
  }
}

async function spawned(child: ChildProcess, program: string): Promise<void> {
  try {
    await once(child, "spawn");
  } catch (cause) {
    throw new HoldpointError("unavailable", `${program} cannot be run`, { cause });
  }
}
