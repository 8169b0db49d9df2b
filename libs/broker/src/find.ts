import { HoldpointError } from "@holdpoint/errors";
import { cachedProgram } from "./cache.ts";
import { type Environment, isExecutable, onPath, outputOf } from "./command.ts";
import { isAtLeast, minimumServerVersion, versionIn } from "./version.ts";

/** A nats-server that can be run here. */
export interface ServerProgram {
  readonly path: string;
  /** Such as `2.15.2`. */
  readonly version: string;
}

export interface FindOptions {
  /** Where `PATH`, `HOLDPOINT_NATS_SERVER`, `HOLDPOINT_CACHE`, `XDG_CACHE_HOME` are read. Default: that of this process. */
  readonly env?: Environment;
}

const versionTimeoutMs = 30_000;

/**
 * The nats-server to use: that of `HOLDPOINT_NATS_SERVER`, else the first on the `PATH` that is recent enough, else that in
 * our cache.
 *
 * @throws HoldpointError `invalid_request` where `HOLDPOINT_NATS_SERVER` names something else, `unavailable` where there
 *   is none; servers that are too old are named
 */
export async function findServer({ env = process.env }: FindOptions = {}): Promise<ServerProgram> {
  const named = env["HOLDPOINT_NATS_SERVER"];
  if (named !== undefined && named !== "") return namedServer(named, env);
  const unfit: string[] = [];
  for (const path of [...(await onPath("nats-server", env)), cachedProgram("nats-server", env)]) {
    const server = await inspect(path, env);
    if (typeof server !== "string") return server;
    if (server !== "") unfit.push(server);
  }
  const seen = unfit.length === 0 ? "none is on the PATH or in the cache" : unfit.join("; ");
  throw new HoldpointError("unavailable", `no nats-server of ${minimumServerVersion} or later was found: ${seen}`);
}

/**
 * The version of the nats-server at `path`, once it is known to be fit for use.
 *
 * @throws HoldpointError `unavailable` where it is none, or is too old
 */
export async function serverAt(path: string, env: Environment): Promise<ServerProgram> {
  const server = await inspect(path, env);
  if (typeof server !== "string") return server;
  throw new HoldpointError("unavailable", server === "" ? `${path} is not an executable file` : server);
}

async function namedServer(path: string, env: Environment): Promise<ServerProgram> {
  try {
    return await serverAt(path, env);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    const advice = `name a nats-server of ${minimumServerVersion} or later, or unset it`;
    throw new HoldpointError("invalid_request", `HOLDPOINT_NATS_SERVER: ${reason}; ${advice}`, { cause });
  }
}

/** The server at `path`, or why it is unfit; the empty string where nothing executable is there. */
async function inspect(path: string, env: Environment): Promise<ServerProgram | string> {
  if (!(await isExecutable(path))) return "";
  try {
    const version = versionIn(await outputOf(path, ["--version"], { env, timeoutMs: versionTimeoutMs }));
    if (version === undefined) return `${path} does not say its version`;
    return isAtLeast(version, minimumServerVersion) ? { path, version } : `${path} is ${version}, too old`;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
