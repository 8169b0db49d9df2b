/** The start and the end of a participant's process: its configuration, its connections, its signals. */
import { HoldpointError } from "@holdpoint/errors";
import type { BlobStore, EventLog } from "@holdpoint/eventsourcing";
import { type Connection, connectTo, openBlobs, openLog, openSnapshots } from "@holdpoint/jetstream";
import { Token } from "@holdpoint/schemas";
import type { SessionEvent } from "@holdpoint/session";
import {
  createLogger,
  type Logger,
  measuredLog,
  type MetricsSink,
  runLogger,
  serveMetrics,
} from "@holdpoint/telemetry";
import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import * as z from "zod";
import { containStrays } from "./author-code.ts";
import { sha256 } from "./hash.ts";
import { MetricsSetting } from "./metrics-setting.ts";
import { Participant } from "./participant.ts";
import type { RoleSpec } from "./role-spec.ts";

/** Exit codes of every process of a run. */
export const exitCodes = { ok: 0, failed: 1, misconfigured: 2, fenced: 3 } as const;

/** What every process of a run is told by its environment. */
export const processSettings = {
  HOLDPOINT_RUN: Token.default("demo"),
  HOLDPOINT_INSTANCE: Token.default("main"),
  HOLDPOINT_WORKER: Token.default("0"),
  NATS_URL: z.string().default("nats://127.0.0.1:4222"),
  NATS_USER: z.string().optional(),
  NATS_PASSWORD: z.string().optional(),
  /** Where Prometheus may scrape this process; absent: nowhere, and nothing is measured. */
  HOLDPOINT_METRICS: MetricsSetting.optional(),
  LOG_LEVEL: z.enum(["debug", "info", "warn", "error", "silent"]).default("info"),
};
export const ProcessSettings = z.object(processSettings);
export type ProcessSettings = z.infer<typeof ProcessSettings>;

/**
 * The settings that `env` gives.
 *
 * @throws HoldpointError `invalid_request` that lists every fault at once
 */
export function readSettings<T>(schema: z.ZodType<T>, env: NodeJS.ProcessEnv): T {
  const parsed = schema.safeParse(env);
  if (parsed.success) return parsed.data;
  throw new HoldpointError("invalid_request", `wrong settings in the environment\n${z.prettifyError(parsed.error)}`);
}

/** The connections of one process of a run. */
export interface RunConnections {
  readonly settings: ProcessSettings;
  readonly logger: Logger;
  readonly connection: Connection;
  readonly log: EventLog;
  readonly blobs: BlobStore;
  /** Unique for this life of the process. */
  readonly incarnation: string;
  /** Where what is measured goes; undefined: nowhere. */
  readonly metrics: MetricsSink | undefined;
}

/** Connects a process called `service` to its run. */
export async function connectToRun(service: string, settings: ProcessSettings): Promise<RunConnections> {
  const incarnation = `${service}-${randomBytes(8).toString("hex")}`;
  const logger = runLogger(createLogger(service, settings.LOG_LEVEL), settings.HOLDPOINT_RUN, incarnation);
  const metrics = await openMetrics(service, settings, { logger, incarnation });
  const connection = await connectTo({
    url: settings.NATS_URL,
    name: `${service}.${settings.HOLDPOINT_INSTANCE}.${settings.HOLDPOINT_WORKER}`,
    ...(settings.NATS_USER !== undefined && { user: settings.NATS_USER }),
    ...(settings.NATS_PASSWORD !== undefined && { password: settings.NATS_PASSWORD }),
  });
  const plainLog = openLog(connection, settings.HOLDPOINT_RUN, {
    onTrouble: (what) => logger.warn({ what }, "append waits"),
  });
  const log = metrics === undefined ? plainLog : measuredLog(plainLog, metrics);
  const blobs = openBlobs(connection, settings.HOLDPOINT_RUN, sha256);
  return { settings, logger, connection, log, blobs, incarnation, metrics };
}

async function openMetrics(
  service: string,
  { HOLDPOINT_METRICS: address, HOLDPOINT_RUN: run }: ProcessSettings,
  { logger, incarnation }: Pick<RunConnections, "logger" | "incarnation">,
): Promise<MetricsSink | undefined> {
  if (address === undefined) return undefined;
  const metrics = await serveMetrics(address, { run, service: `holdpoint-${service}`, incarnation });
  logger.info({ url: metrics.url }, "metrics are served");
  return metrics;
}

/** Epoch milliseconds of a clock that nobody sets while the process lives. */
function evenClock(): number {
  return performance.timeOrigin + performance.now();
}

/** Opens the participant of a role in a run: it has recovered its sessions, and serves once it is told to. */
export async function openParticipant<State, Own extends SessionEvent>(
  { settings, logger, connection, log, blobs, incarnation }: RunConnections,
  spec: RoleSpec<State, Own>,
  endpoint?: string,
): Promise<Participant<State, Own>> {
  await streamMade(log, logger);
  const participant = await Participant.open(
    {
      run: settings.HOLDPOINT_RUN,
      instance: settings.HOLDPOINT_INSTANCE,
      worker: settings.HOLDPOINT_WORKER,
      endpoint,
      incarnation,
      log,
      blobs,
      snapshots: openSnapshots(connection, settings.HOLDPOINT_RUN),
      messenger: connection,
      clock: evenClock,
      fenced: () => {
        logger.error("another process has taken over; this one stops");
        process.exit(exitCodes.fenced);
      },
      failed: (error) => {
        logger.error(
          { err: error },
          "this process can no longer append or obey; it stops, and has to be started again",
        );
        process.exit(exitCodes.failed);
      },
      trouble: (what, error, about) => logger.warn({ err: error, what, ...about }, "trouble"),
    },
    spec,
  );
  noticeOutages(connection, participant, (error) => logger.warn({ err: error }, "an outage was not recorded"));
  return participant;
}

export interface StreamPatience {
  /** How long to wait. Default: for ever. */
  readonly patienceMs?: number;
  /** Between two looks. Default: 100. */
  readonly pauseMs?: number;
  /** Looks from one word about it to the next. Default: 100, so about ten seconds. */
  readonly looksPerWord?: number;
}

/**
 * Returns once the run's stream is there: a coordinator makes it, and may start later than the others. Says what it waits for.
 *
 * @throws HoldpointError `not_found` where it is not there in time
 */
export async function streamMade(
  log: Pick<EventLog, "stream" | "lastSequence">,
  logger: Pick<Logger, "warn">,
  { patienceMs = Number.POSITIVE_INFINITY, pauseMs = 100, looksPerWord = 100 }: StreamPatience = {},
): Promise<void> {
  const { stream } = log;
  const since = performance.now();
  for (let looks = 0; ; looks++) {
    try {
      await log.lastSequence();
      return;
    } catch (error) {
      const waitedMs = Math.round(performance.now() - since);
      if (!HoldpointError.is(error, "not_found") || waitedMs > patienceMs) throw error;
      if (looks % looksPerWord === 0) logger.warn({ stream, waitedMs }, waiting);
      await delay(pauseMs);
    }
  }
}

const waiting =
  "waits for the run's stream, which its coordinator makes: start one for this HOLDPOINT_RUN, or name another run";

/** Records how long the broker was away, each time it comes back. */
function noticeOutages<State, Own extends SessionEvent>(
  connection: Connection,
  participant: Participant<State, Own>,
  failed: (error: unknown) => void,
): void {
  let lostAtMs: number | undefined;
  connection.onStatus(({ type }) => {
    if (type === "disconnected") lostAtMs ??= participant.clock.nowMs();
    if (type !== "connected" || lostAtMs === undefined) return;
    participant.reconnected(lostAtMs).catch(failed);
    lostAtMs = undefined;
  });
}

/** With which code a process ends that cannot go on: wrong credentials are wrong settings. */
export function exitCodeOf(error: unknown): number {
  const isSetting = HoldpointError.is(error, "invalid_request") || HoldpointError.is(error, "unauthorized");
  return isSetting ? exitCodes.misconfigured : exitCodes.failed;
}

/**
 * Runs the process of a role until it is told to stop: SIGTERM and SIGINT end it cleanly, a wrong setting with code 2. What nobody
 * catches in an author's function ends the work that it does; anywhere else the process, with code 1.
 *
 * @param service as which the log names it, where it does not come to serve
 */
export async function runProcess(
  start: () => Promise<{ stop(): Promise<void> }>,
  service = "holdpoint",
): Promise<void> {
  containStrays((error) => {
    startLogger(service).error(
      { err: error },
      "nobody caught this, and it belongs to no author's function; this process stops",
    );
    process.exit(exitCodes.failed);
  });
  try {
    const running = await start();
    const stop = () => void running.stop().then(() => process.exit(exitCodes.ok));
    process.once("SIGTERM", stop);
    process.once("SIGINT", stop);
  } catch (error) {
    // Of many lines, for whoever starts it: it is not known yet whether anything of the settings can be relied on.
    if (HoldpointError.is(error, "invalid_request")) process.stderr.write(`${error.message}\n`);
    else sayWhy(error, service);
    process.exit(exitCodeOf(error));
  }
}

/** Why a process does not come to serve, as a line of its log: of our own errors code and words, of a bug where it happened too. */
function sayWhy(error: unknown, service: string): void {
  const logger = startLogger(service);
  if (!HoldpointError.is(error)) logger.error({ err: error }, "this process cannot start");
  else logger.error({ code: error.code, details: error.details }, `this process cannot start: ${error.message}`);
}

/** A log for where nothing has been connected yet, or nothing can be relied on any more. */
function startLogger(service: string): Logger {
  const { HOLDPOINT_RUN: run, LOG_LEVEL: wanted } = process.env;
  const { data: level = "info" } = processSettings.LOG_LEVEL.safeParse(wanted);
  return createLogger(service, level).child({ run });
}
