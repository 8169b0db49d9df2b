import { HoldpointError } from "@holdpoint/errors";
import { type DestinationStream, type Logger, type LoggerOptions, pino, stdSerializers } from "pino";
import { traceIdOf } from "./trace-ids.ts";

export type { Logger } from "pino";

/** Names of fields whose values never reach the log, at the top level and one below. */
const secrets = ["token", "password", "authorization", "NATS_PASSWORD"].flatMap((name) => [name, `*.${name}`]);

/**
 * The log of one service: JSON lines, time in epoch milliseconds, errors under `err` with their code and details.
 *
 * Bind what identifies the work at hand once, as `runLogger` does.
 *
 * @param level `debug`, `info`, `warn`, `error` or `silent`
 * @param destination default: standard output
 */
export function createLogger(service: string, level: string, destination?: DestinationStream): Logger {
  const options: LoggerOptions = { level, base: { service }, redact: secrets, serializers: { err: serializeError } };
  return destination === undefined ? pino(options) : pino(options, destination);
}

/**
 * The log of one life of a process of `run`.
 *
 * A line that names a checkpoint, as `checkpointId`, also names its trace.
 */
export function runLogger(logger: Logger, run: string, incarnation: string): Logger {
  const log = (line: object): object => {
    const checkpointId = "checkpointId" in line ? line.checkpointId : undefined;
    return typeof checkpointId === "string" ? { ...line, traceId: traceIdOf(run, checkpointId) } : line;
  };
  return logger.child({ run, incarnation }, { formatters: { log } });
}

function serializeError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const serialized = stdSerializers.err(error);
  return HoldpointError.is(error) ? { ...serialized, code: error.code, details: error.details } : serialized;
}
