/** How we connect, and to which servers we refuse to. */
import { HoldpointError } from "@holdpoint/errors";
import type { AbortSignalLike } from "@holdpoint/eventsourcing";
import { AuthorizationError, connect, type NatsConnection } from "nats";
import { setTimeout as pause } from "node:timers/promises";
import { Connection } from "./connection.ts";
import { translate } from "./failure.ts";

export interface ConnectOptions {
  /** Such as `nats://127.0.0.1:4222`; several with commas between. */
  readonly url: string;
  /** One of the users of `nats.conf`; absent: the server asks for none. */
  readonly user?: string;
  readonly password?: string;
  /** What the server's monitoring shows. */
  readonly name: string;
  readonly signal?: AbortSignalLike;
  /** How long to try the first connect, as the broker may be starting too. Default: 15,000. */
  readonly patienceMs?: number;
}

const pauseMs = 100;
/** Atomic batches and the reset of consumers. */
const minimumApiLevel = 4;

/**
 * Connects to the broker; from then on the connection is renewed for ever, until it is closed.
 *
 * @throws HoldpointError `unavailable` where no server answers in time, or it is older than 2.14, or has no JetStream;
 *   `unauthorized` where it does not know the user
 */
export async function connectTo(options: ConnectOptions): Promise<Connection> {
  const inboxPrefix = options.user === undefined ? "_INBOX" : `_INBOX_${options.user}`;
  const nats = await firstConnect(options, inboxPrefix);
  const fault = serverFault(nats);
  if (fault === undefined) return Connection.over(nats, inboxPrefix);
  await nats.close();
  throw new HoldpointError("unavailable", `the server at ${options.url} cannot be used: ${fault}`);
}

async function firstConnect(options: ConnectOptions, inboxPrefix: string): Promise<NatsConnection> {
  const { url, user, password, name, signal, patienceMs = 15_000 } = options;
  const end = performance.now() + patienceMs;
  for (;;) {
    try {
      return await connect({
        servers: url.split(","),
        name,
        ...(user !== undefined && { user }),
        ...(password !== undefined && { pass: password }),
        inboxPrefix, // else users could read each other's replies
        maxReconnectAttempts: -1,
        reconnectTimeWait: 100,
        reconnectJitter: 100,
        pingInterval: 10_000,
        maxPingOut: 2,
        timeout: 5000,
        noAsyncTraces: true, // halves the rate of requests
      });
    } catch (error) {
      const over = performance.now() > end || signal?.aborted === true;
      if (error instanceof AuthorizationError || over) throw translate(error, `connecting to ${url}`);
      await pause(pauseMs);
    }
  }
}

/** Why the server is of no use to us, and what to do; `undefined` where it is. */
function serverFault({ info }: NatsConnection): string | undefined {
  if (info === undefined) return "it has gone again; try once more";
  const [major = 0, minor = 0] = info.version.split(".").map(Number);
  if (major < 2 || (major === 2 && minor < 14) || (info.api_lvl ?? 0) < minimumApiLevel) {
    return `it is nats-server ${info.version}, and 2.14 is needed (guards of the log are ignored or refused before); upgrade it`;
  }
  if (info.jetstream !== true) return "JetStream is switched off; start it with the nats.conf of Holdpoint";
  return undefined;
}
