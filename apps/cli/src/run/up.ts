/** A run of one's own on this machine: a broker, a coordinator and the participants, kept up until the signal. */
import { type RunningBroker, startBroker } from "@holdpoint/broker";
import { Controller } from "@holdpoint/client";
import { HoldpointError } from "@holdpoint/errors";
import { connectTo, openLog } from "@holdpoint/jetstream";
import { type Role, roles } from "@holdpoint/schemas";
import { randomBytes } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { consequenceOf, keepBroker, restartMs } from "./keeping.ts";
import type { ProcessExit } from "./managed-process.ts";
import { ProcessGuard } from "./process-guard.ts";
import { isProcessName, ownProgram, processNames, RunProcesses } from "./run-processes.ts";
import type { ProcessSettings } from "./up-settings.ts";
import { makeWorkFolder, removeWorkFolder } from "./work-folder.ts";

export interface UpOptions {
  readonly run: string;
  /** Where its log and its state stay. Absent: a temporary folder. */
  readonly folder?: string;
  /** Of the broker. Absent: a free one. */
  readonly port?: number;
  /** Variables for each process, beside the common ones. */
  readonly settings: ProcessSettings;
  /** Programs of participants that are not ours. */
  readonly programs?: Programs;
  readonly signal: AbortSignal;
  /** Called once everybody serves. */
  readonly ready: (running: RunningUp) => Promise<void>;
  readonly tell: (sentence: string) => void;
}

/** The paths of JavaScript or TypeScript files, absolute. */
type Programs = { readonly [Name in Role]?: string | undefined };

export interface RunningUp {
  readonly run: string;
  readonly folder: string;
  readonly broker: RunningBroker;
  /** Where a trainer of the run keeps its state. */
  readonly trainerDir: string;
}

const servants = processNames.filter((name) => name !== "trainer");
const readyTimeoutMs = 60_000;
const lookMs = 200;
const longestMs = 2 ** 31 - 1;

/**
 * Starts a run and keeps it up until the signal. Nothing of it is left running when this returns or throws.
 *
 * @throws HoldpointError `unavailable` where the broker or a process cannot be started, or they do not come to serve;
 *   `invalid_request` where a process ends for its settings
 */
export async function up(options: UpOptions): Promise<void> {
  const folder = options.folder === undefined ? await makeWorkFolder("up") : resolve(options.folder);
  await mkdir(folder, { recursive: true });
  const guard = new ProcessGuard();
  try {
    const ports = options.port === undefined ? {} : { client: options.port };
    const broker = await startBroker({ storeDir: join(folder, "nats"), ports, onProgress: options.tell });
    const over = new AbortController();
    const kept = keepBroker(broker, { signal: over.signal, tell: options.tell });
    try {
      await serve(options, { folder, guard, broker });
    } finally {
      over.abort();
      await kept;
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
  const { run, tell, ready, settings, programs = {} } = options;
  const { folder, broker } = parts;
  const mark = randomBytes(8).toString("hex");
  const hopeless = new AbortController();
  const signal = AbortSignal.any([options.signal, hopeless.signal]);
  let isUp = false;
  const onExit = (exit: ProcessExit) => {
    if (consequenceOf(exit, isUp) === "give up") hopeless.abort(cannotRun(exit));
    else afterExit(processes, exit, { signal, tell }).catch((error: unknown) => tell(String(error)));
  };
  const processes: RunProcesses = new RunProcesses({
    ...parts,
    run,
    mark,
    settings,
    programOf: (name) => new Map(Object.entries(programs)).get(name) ?? ownProgram(name),
    onExit,
  });
  await processes.prepare();
  try {
    for (const name of servants) await processes.of(name).start();
    await untilReady(run, broker, signal);
    isUp = true;
    await ready({ run, folder, broker, trainerDir: processes.stateDir("trainer") });
    while (!signal.aborted) await pause(longestMs, undefined, { signal }).catch(() => undefined);
    hopeless.signal.throwIfAborted();
  } finally {
    await processes.stopAll();
  }
}

function cannotRun({ process, lastWords }: ProcessExit): HoldpointError {
  return new HoldpointError("invalid_request", `${process} cannot run: ${lastWords}`);
}

/** A process that ended by itself goes on where its log stands, unless another one has its place. */
async function afterExit(
  processes: RunProcesses,
  exit: ProcessExit,
  { signal, tell }: Pick<UpOptions, "signal" | "tell">,
): Promise<void> {
  const { process, code, signal: by } = exit;
  const consequence = consequenceOf(exit, true);
  if (consequence === "none" || !isProcessName(process) || signal.aborted) return;
  const log = `see ${processes.logFile(process)}`;
  if (consequence === "leave") {
    tell(`${process} ended with code ${code}: another process has taken its place, so it is not started again; ${log}`);
    return;
  }
  tell(`${process} ended with ${by ?? `code ${code}`} and is started again; ${log}`);
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
