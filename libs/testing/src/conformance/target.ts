/** The participant under examination: how it is started, and what it can be given to work on. */
import type { Json, Role } from "@holdpoint/schemas";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";

/** What the kit asks of it. All of it may be asked for many times, in many sessions. */
export interface Workload {
  /** environment: a task; agent and resources: a seed. */
  readonly seed?: Json;
  /** agent and resources: another one, which is refused where that one was given. Absent: that is not looked at. */
  readonly otherSeed?: Json;
  /** resources: a tool call that succeeds; agent: one that it passes on when the model asks for it. */
  readonly tool?: { readonly name: string; readonly arguments: Json };
  /** model: the body of a chat completion of the turn. */
  readonly request?: (turn: number) => object;
}

export interface ConformanceTarget {
  readonly role: Role;
  /**
   * The program and its arguments. It finds the broker and its name in the environment: `NATS_URL`, `NATS_USER`, `NATS_PASSWORD`,
   * `HOLDPOINT_RUN`, `HOLDPOINT_INSTANCE`, `HOLDPOINT_WORKER`.
   */
  readonly command: readonly [string, ...string[]];
  readonly env?: Readonly<Record<string, string>>;
  readonly workload: Workload;
}

/** A process of the target. */
export class TargetProcess {
  readonly #child: ChildProcess;
  #output = "";

  constructor({ command: [program, ...parameters], env = {} }: ConformanceTarget, settings: Record<string, string>) {
    const { PATH = "" } = process.env;
    this.#child = spawn(program, parameters, { env: { PATH, ...settings, ...env }, stdio: ["ignore", "pipe", "pipe"] });
    this.#child.on("error", (error) => (this.#output += String(error)));
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.on("data", (chunk: Buffer) => (this.#output = (this.#output + chunk.toString()).slice(-10_000)));
    }
  }

  /** The last of what it has written. */
  get output(): string {
    return this.#output;
  }

  get isRunning(): boolean {
    return this.#child.pid !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Ends it as the kernel does when memory is short; returns when it is gone. */
  async kill(): Promise<void> {
    if (!this.isRunning) return;
    const exited = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await exited;
  }
}
