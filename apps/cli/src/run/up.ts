/** A run of one's own on this machine: a broker, a coordinator and the participants, kept up until the signal. */
import { type RunningBroker, startBroker } from "@holdpoint/broker";
import { Controller } from "@holdpoint/client";
import { HoldpointError } from "@holdpoint/errors";
import { connectTo, openLog } from "@holdpoint/jetstream";
import { roles } from "@holdpoint/schemas";
import { randomBytes } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { ProcessExit } from "./managed-process.ts";
import { ProcessGuard } from "./process-guard.ts";
import { isProcessName, processNames, RunProcesses } from "./run-processes.ts";
import { makeWorkFolder, removeWorkFolder } from "./work-folder.ts";

export interface UpOptions {
  readonly run: string;
  /** Where its log and its state stay. Absent: a temporary folder. */
  readonly folder?: string;
  /** Of the broker. Absent: a free one. */
  readonly port?: number;
  readonly signal: AbortSignal;
  /** Called once everybody serves. */
  readonly ready: (running: RunningUp) => Promise<void>;
  readonly tell: (sentence: string) => void;
}

export interface RunningUp {
  readonly run: string;
  readonly folder: string;
  readonly broker: RunningBroker;
  /** Where a trainer of the run keeps its state. */
  readonly trainerDir: string;
}

const servants = processNames.filter((name) => name !== "trainer");
/** Before a process that ended by itself is started again. */
const restartMs = 1_000;
const readyTimeoutMs = 60_000;
const lookMs = 200;
const longestMs = 2 ** 31 - 1;

/**
 * Starts a run and keeps it up until the signal. Nothing of it is left running when this returns or throws.
 *
 * @throws HoldpointError `unavailable` where the broker or a process cannot be started, or they do not come to serve
 */
export async function up(options: UpOptions): Promise<void> {
  const folder = options.folder === undefined ? await makeWorkFolder("up") : resolve(options.folder);
  await mkdir(folder, { recursive: true });
  const guard = new ProcessGuard();
  try {
    const ports = options.port === undefined ? {} : { client: options.port };
    const broker = await startBroker({ storeDir: join(folder, "nats"), ports, onProgress: options.tell });
    try {
      await serve(options, { folder, guard, broker });
    } finally {
      await broker.stop();
    }
  } finally {
    guard.close();
    if (options.folder === undefined) await removeWorkFolder(folder);
  }
}

interface Parts {
  readonly folder: string;
  readonly guard: ProcessGuard;
  readonly broker: RunningBroker;
}

async function serve(options: UpOptions, parts: Parts): Promise<void> {
  const { run, signal, tell, ready } = options;
  const { folder, broker } = parts;
  const mark = randomBytes(8).toString("hex");
  const onExit = (exit: ProcessExit) => {
    startAgain(processes, exit, options).catch((error: unknown) => tell(String(error)));
  };
  const processes: RunProcesses = new RunProcesses({ ...parts, run, mark, onExit });
  await processes.prepare();
  try {
    for (const name of servants) await processes.of(name).start();
    await untilReady(run, broker, signal);
    await ready({ run, folder, broker, trainerDir: processes.stateDir("trainer") });
    while (!signal.aborted) await pause(longestMs, undefined, { signal }).catch(() => undefined);
  } finally {
    await processes.stopAll();
  }
}

/** A process that ended by itself goes on where its log stands. */
async function startAgain(
  processes: RunProcesses,
  { process, cause, code, signal: by }: ProcessExit,
  { signal, tell }: Pick<UpOptions, "signal" | "tell">,
): Promise<void> {
  if (cause !== "own" || !isProcessName(process) || signal.aborted) return;
  tell(`${process} ended with ${by ?? `code ${code}`} and is started again; see ${processes.logFile(process)}`);
  await pause(restartMs, undefined, { signal }).catch(() => undefined);
  if (!signal.aborted) await processes.of(process).start();
}

/** Returns once every role has a participant. */
async function untilReady(run: string, broker: RunningBroker, signal: AbortSignal): Promise<void> {
  const { user, password } = broker.credentialsOf("operator");
  const connection = await connectTo({ url: broker.url, user, password, name: "holdpoint up", signal });
  const patience = AbortSignal.timeout(readyTimeoutMs);
  try {
    const controller = new Controller({ connection, log: openLog(connection, run), run });
    for (;;) {
      const both = AbortSignal.any([signal, patience]);
      const outcome = await controller.command({ operation: "discover" }, { signal: both });
      const there = outcome.result?.participants ?? [];
      if (roles.every((role) => there.some((participant) => participant.role === role))) return;
      await pause(lookMs, undefined, { signal: both });
    }
  } catch (error) {
    signal.throwIfAborted();
    if (!patience.aborted) throw error;
    throw new HoldpointError("unavailable", `not everybody serves after ${readyTimeoutMs} ms: see the logs`, {
      cause: error,
    });
  } finally {
    await connection.close();
  }
}
