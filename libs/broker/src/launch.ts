/** One start of a nats-server with our configuration, until JetStream serves. */
import { HoldpointError } from "@holdpoint/errors";
import { setTimeout as pause } from "node:timers/promises";
import * as z from "zod";
import type { Environment } from "./command.ts";
import { brokerUsers, type Passwords, passwordVariable } from "./credentials.ts";
import type { Guard } from "./guard.ts";
import type { Ports } from "./ports.ts";
import { type ServerProcess, startServerProcess } from "./server-process.ts";

/** What stays the same over the restarts of a broker. */
export interface LaunchSettings {
  readonly serverPath: string;
  /** By this its monitoring tells it from another server that has its port. */
  readonly serverName: string;
  readonly config: string;
  readonly storeDir: string;
  readonly logFile: string;
  readonly passwords: Passwords;
  readonly ports: Ports;
  readonly env: Environment;
  readonly startTimeoutMs: number;
}

/** The end of what a server printed, in characters, that an error repeats. */
const quotedCharacters = 1_000;
const pollMs = 20;
const requestTimeoutMs = 2_000;

/**
 * A server that serves, or `port_taken` where another process has one of the ports.
 *
 * @param guard watches the process for as long as it lives
 * @throws HoldpointError `unavailable` where it ends or does not serve within `startTimeoutMs`; it is then ended
 */
export async function launch(
  settings: LaunchSettings,
  guard: Guard | undefined,
): Promise<ServerProcess | "port_taken"> {
  const { serverPath, serverName, config, logFile } = settings;
  const args = ["--config", config, "--server_name", serverName];
  const server = await startServerProcess({ path: serverPath, args, env: variables(settings), logFile });
  guard?.watch(server.pid);
  // The number may soon be another's.
  void server.exited.then(() => guard?.watch(undefined));
  const patience = AbortSignal.timeout(settings.startTimeoutMs);
  while (!server.hasExited()) {
    if (await serves(monitorUrl(settings.ports), serverName)) return server;
    if (patience.aborted) {
      await server.end("SIGKILL");
      throw failure(`nats-server did not serve within ${settings.startTimeoutMs} ms`, server, settings);
    }
    await pause(pollMs);
  }
  if (/address already in use|only one usage of each socket address/i.test(server.printed())) return "port_taken";
  throw failure("nats-server ended at its start", server, settings);
}

export function monitorUrl(ports: Ports): string {
  return `http://127.0.0.1:${ports.monitor}`;
}

/** Whether the server called `serverName` answers at `url`, takes connections and has JetStream. */
export async function serves(url: string, serverName: string): Promise<boolean> {
  const health = await get(`${url}/healthz?js-enabled-only=true`);
  if (health === undefined) return false;
  const varz = z.object({ server_name: z.string() }).safeParse(await get(`${url}/varz`));
  return varz.success && varz.data.server_name === serverName;
}

/** The JSON at `url`, or `undefined` where nobody answers, or with a failure. */
async function get(url: string): Promise<unknown> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(requestTimeoutMs) });
    return response.ok ? await response.json() : undefined;
  } catch {
    return undefined;
  }
}

/** The variables that `nats.conf` reads, on top of ours. */
function variables({ ports, storeDir, passwords, env }: LaunchSettings): Environment {
  const users = brokerUsers.map((user) => [passwordVariable(user), quoted(passwords[user])] as const);
  return {
    ...env,
    HOLDPOINT_NATS_LISTEN: `127.0.0.1:${ports.client}`,
    HOLDPOINT_WEBSOCKET_LISTEN: `127.0.0.1:${ports.websocket}`,
    HOLDPOINT_MONITOR_LISTEN: `127.0.0.1:${ports.monitor}`,
    HOLDPOINT_STORE_DIR: quoted(storeDir),
    ...Object.fromEntries(users),
  };
}

/** `text` as a string of the server's configuration language, which would take `0123` for a number. */
function quoted(text: string): string {
  return `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}

function failure(what: string, server: ServerProcess, { serverPath, config }: LaunchSettings): HoldpointError {
  const said = server.printed().trim().slice(-quotedCharacters);
  return new HoldpointError("unavailable", `${what} (${serverPath} with ${config}). It printed:\n${said}`);
}
