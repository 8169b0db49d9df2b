import { HoldpointError } from "@holdpoint/errors";
import { randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { passwords, type Passwords } from "./credentials.ts";
import { findServer } from "./find.ts";
import { type Guard, startGuard } from "./guard.ts";
import { launch, type LaunchSettings, monitorUrl } from "./launch.ts";
import { choosePorts, type Ports } from "./ports.ts";
import { provideServer, type ProvideOptions } from "./provide.ts";
import { RunningBroker } from "./running-broker.ts";
import type { ServerProcess } from "./server-process.ts";
import { markStore, openStore } from "./store.ts";

export interface StartOptions extends ProvideOptions {
  /** The path of the nats-server. Default: that of `findServer`, else of `provideServer`. */
  readonly server?: string;
  /** Where the streams rest, made where it is missing. Default: a temporary folder, which `stop` removes. */
  readonly storeDir?: string;
  /** On loopback. Default for each: a free one. */
  readonly ports?: Partial<Ports>;
  /** Default for each user: a random one. */
  readonly passwords?: Partial<Passwords>;
  /** A configuration that reads the same variables as `nats.conf`, which is the default. */
  readonly config?: string;
  /** Whether the broker outlives this process; it then needs a `storeDir`. Default: false. */
  readonly detached?: boolean;
  /** How long the server may take to read its store. Default: 60,000. */
  readonly startTimeoutMs?: number;
}

const defaultStartTimeoutMs = 60_000;
const ownConfig = fileURLToPath(new URL("../../../nats.conf", import.meta.url));
/** How often other ports are chosen where somebody was faster. */
const portChoices = 10;

/**
 * Starts a nats-server on loopback with `nats.conf`, and waits until JetStream serves.
 *
 * It ends with this process, however this ends, unless it is `detached`.
 *
 * @throws HoldpointError `unavailable` where there is no server and none can be provided, it does not start, or a given port
 *   or the store is in use; `invalid_request` where an option cannot be used
 */
export async function startBroker(options: StartOptions = {}): Promise<RunningBroker> {
  const isTemporary = options.storeDir === undefined;
  if (isTemporary && options.detached === true) {
    throw new HoldpointError("invalid_request", "a detached broker outlives this process: give it a `storeDir`");
  }
  const program = await programFor(options);
  const storeDir = await openStore(options.storeDir);
  const guard = options.detached === true ? undefined : startGuard(isTemporary ? storeDir : undefined);
  try {
    const started = await launchOnFreePorts({ ...program, ...namesIn(storeDir) }, options.ports, guard);
    return new RunningBroker({ ...started, guard, isTemporary });
  } catch (error) {
    guard?.release();
    if (isTemporary) await rm(storeDir, { recursive: true, force: true });
    throw error;
  }
}

/** What an option or its default says of the program, whatever its store. */
async function programFor(options: StartOptions) {
  return {
    passwords: passwords(options.passwords),
    serverPath: options.server ?? (await anyServer(options)),
    config: resolve(options.config ?? ownConfig),
    env: options.env ?? process.env,
    startTimeoutMs: options.startTimeoutMs ?? defaultStartTimeoutMs,
  };
}

function namesIn(storeDir: string) {
  const serverName = `holdpoint-${randomBytes(6).toString("hex")}`;
  return { storeDir, serverName, logFile: join(storeDir, "nats-server.log") };
}

async function anyServer(options: ProvideOptions): Promise<string> {
  try {
    return (await findServer(options)).path;
  } catch (error) {
    if (!HoldpointError.is(error, "unavailable")) throw error;
    return (await provideServer(options)).path;
  }
}

async function launchOnFreePorts(
  fixed: Omit<LaunchSettings, "ports">,
  given: Partial<Ports> | undefined,
  guard: Guard | undefined,
): Promise<{ settings: LaunchSettings; server: ServerProcess }> {
  for (let choice = 1; choice <= portChoices; choice++) {
    const settings = { ...fixed, ports: await choosePorts(given) };
    await markStore(fixed.storeDir, { serverName: fixed.serverName, monitorUrl: monitorUrl(settings.ports) });
    const server = await launch(settings, guard);
    if (server !== "port_taken") return { settings, server };
  }
  const wanted = Object.entries(given ?? {}).map(([use, port]) => `${use} ${port}`);
  const advice =
    wanted.length === 0 ? "" : ` (${wanted.join(", ")}): name others, or none, so that free ones are chosen`;
  throw new HoldpointError("unavailable", `another process has a port of the broker${advice}`);
}
