/**
 * The processes of one run on this machine: started with the credentials of their role, killed, started again, stopped.
 *
 * Owns the processes; the broker is somebody else's. Each keeps what it has to keep below the run's folder:
 *
 *   logs/<name>.log      what it prints, JSON lines
 *   state/resources      sandboxes, snapshots, the execution log
 *   state/trainer        checkpoints of the trainer, final.json
 */
import { type Broker, brokerEnvironment } from "@holdpoint/broker";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { markVariable } from "./leftovers.ts";
import { ManagedProcess, type ProcessExit } from "./managed-process.ts";
import type { ProcessGuard } from "./process-guard.ts";
import type { ProcessSettings } from "./up-settings.ts";

/** In the order in which they are started: who is asked comes before who asks. */
export const processNames = ["coordinator", "model", "resources", "agent", "environment", "trainer"] as const;
export type ProcessName = (typeof processNames)[number];

export function isProcessName(name: string): name is ProcessName {
  return processNames.some((known) => known === name);
}

export interface RunProcessesOptions {
  readonly run: string;
  readonly folder: string;
  readonly broker: Broker;
  readonly guard: ProcessGuard;
  /** By this the processes of the run, and what they start, are known. */
  readonly mark: string;
  /** Variables for one of them, beside the common ones. */
  readonly settings?: ProcessSettings;
  /** Where the programs are. Default: ours. */
  readonly programOf?: (name: ProcessName) => string;
  readonly onExit: (exit: ProcessExit) => void;
}

const stopPatienceMs = 5_000;

export class RunProcesses {
  readonly folder: string;
  readonly #options: RunProcessesOptions;
  readonly #processes: ReadonlyMap<ProcessName, ManagedProcess>;

  constructor(options: RunProcessesOptions) {
    this.folder = options.folder;
    this.#options = options;
    const { guard, onExit, programOf = ownProgram } = options;
    this.#processes = new Map(
      processNames.map((name) => {
        const logFile = join(options.folder, "logs", `${name}.log`);
        const env = this.environmentOf(name);
        return [name, new ManagedProcess({ name, program: programOf(name), env, logFile, guard, onExit })];
      }),
    );
  }

  /** Where a process keeps its state. */
  stateDir(name: ProcessName): string {
    return join(this.folder, "state", name);
  }

  logFile(name: ProcessName): string {
    return join(this.folder, "logs", `${name}.log`);
  }

  /** All that a process of this name is told by its environment. */
  environmentOf(name: ProcessName): Record<string, string> {
    const { run, broker, mark, settings } = this.#options;
    return {
      ...inherited(),
      ...brokerEnvironment(broker, name),
      ...(broker.monitorUrl === undefined ? {} : { HOLDPOINT_MONITOR_URL: broker.monitorUrl }),
      HOLDPOINT_RUN: run,
      HOLDPOINT_STATE_DIR: this.stateDir(name),
      [markVariable]: mark,
      ...settings?.[name],
    };
  }

  of(name: ProcessName): ManagedProcess {
    const found = this.#processes.get(name);
    if (found === undefined) throw new RangeError(`no process ${name}`);
    return found;
  }

  /** Those that run. */
  running(): readonly ManagedProcess[] {
    return [...this.#processes.values()].filter(({ isRunning }) => isRunning);
  }

  async prepare(): Promise<void> {
    await mkdir(join(this.folder, "logs"), { recursive: true });
    for (const name of processNames) await mkdir(this.stateDir(name), { recursive: true });
  }

  /** Kills all that run at once, and returns when they are gone. */
  async killAll(): Promise<void> {
    const running = this.running();
    for (const process of running) process.kill();
    await Promise.all(running.map((process) => process.exited()));
  }

  /** Stops all that run, those that ask before those that are asked. */
  async stopAll(): Promise<void> {
    for (const name of processNames.toReversed()) await this.of(name).stop(stopPatienceMs);
  }
}

/** Our own program of that name. */
export function ownProgram(name: ProcessName): string {
  return fileURLToPath(new URL(`../../../${name}/src/main.ts`, import.meta.url));
}

/** Our environment, without what tells a process of a run which one it is. */
function inherited(): Record<string, string> {
  const entries = Object.entries(process.env).flatMap(([key, value]) =>
    value === undefined || /^(HOLDPOINT|NATS)_/.test(key) ? [] : [[key, value] as const],
  );
  return Object.fromEntries(entries);
}
