import { HoldpointError } from "@holdpoint/errors";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync, statSync } from "node:fs";
import type { Environment } from "./command.ts";

export interface ServerOptions {
  readonly path: string;
  readonly args: readonly string[];
  readonly env: Environment;
  /** What it prints is appended there: a file, so that it can outlive us. */
  readonly logFile: string;
}

/** One life of a nats-server. */
export interface ServerProcess {
  readonly pid: number;
  /** Settles when the process has ended. */
  readonly exited: Promise<void>;
  hasExited(): boolean;
  /** Sends `signal` and waits for the end. Harmless after it. */
  end(signal: "SIGTERM" | "SIGKILL"): Promise<void>;
  /** What this life has printed so far. */
  printed(): string;
}

/**
 * Starts the process; whether it serves is another question. It does not keep ours alive.
 *
 * @throws HoldpointError `unavailable` where the program cannot be run
 */
export async function startServerProcess({ path, args, env, logFile }: ServerOptions): Promise<ServerProcess> {
  const log = openSync(logFile, "a", 0o600);
  const printedFrom = statSync(logFile).size;
  // A process group of its own, so that Ctrl-C in a terminal reaches us alone, and we end it in order.
  const child = spawn(path, [...args], { env: { ...env }, stdio: ["ignore", log, log], detached: true });
  closeSync(log);
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const pid = await spawned(child, path);
  child.unref();
  return {
    pid,
    exited,
    hasExited: () => child.exitCode !== null || child.signalCode !== null,
    end: async (signal) => {
      child.ref();
      child.kill(signal);
      await exited;
    },
    printed: () => readFileSync(logFile).subarray(printedFrom).toString("utf8"),
  };
}

async function spawned(child: ChildProcess, path: string): Promise<number> {
  try {
    await once(child, "spawn");
  } catch (cause) {
    throw new HoldpointError("unavailable", `${path} cannot be run`, { cause });
  }
  return child.pid ?? 0;
}
