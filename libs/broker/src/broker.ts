/** A broker as its clients see it, whoever runs it. */
import { HoldpointError } from "@holdpoint/errors";
import * as z from "zod";
import type { Environment } from "./command.ts";
import { type BrokerUser, type Credentials, credentialsOf, passwordVariable } from "./credentials.ts";

export interface Broker {
  /** Without credentials, such as `nats://127.0.0.1:4222`. */
  readonly url: string;
  /** For browsers, such as `ws://127.0.0.1:4280`; `undefined` where not known. */
  readonly wsUrl: string | undefined;
  /** Of the HTTP monitoring, such as `http://127.0.0.1:8222`; `undefined` where not known. */
  readonly monitorUrl: string | undefined;

  /** What `user` connects with; `undefined` where none are known, so that a client connects without. */
  credentialsOf(user: BrokerUser): Credentials | undefined;
}

/** A string in an environment; the empty one counts as absent. */
const text = z.preprocess((value) => (value === "" ? undefined : value), z.string().optional());
const Settings = z.object({
  NATS_URL: z.url({ protocol: /^(nats|tls)$/ }),
  NATS_USER: text,
  NATS_PASSWORD: text,
  NATS_WEBSOCKET_URL: z.preprocess(
    (value) => (value === "" ? undefined : value),
    z.url({ protocol: /^wss?$/ }).optional(),
  ),
  NATS_MONITOR_URL: z.preprocess(
    (value) => (value === "" ? undefined : value),
    z.url({ protocol: /^https?$/ }).optional(),
  ),
});

/**
 * The broker that runs already, where `NATS_URL` names one; else `undefined`.
 *
 * `NATS_USER` and `NATS_PASSWORD`, or what stands in the URL, are the credentials of every user. Without them the variables
 * of `nats.conf` are taken, `HOLDPOINT_AGENT_PASSWORD` and so on. `NATS_WEBSOCKET_URL` and `NATS_MONITOR_URL` are optional.
 *
 * @throws HoldpointError `invalid_request` where a variable cannot be understood
 */
export function useBroker(env: Environment = process.env): Broker | undefined {
  if (env["NATS_URL"] === undefined || env["NATS_URL"] === "") return undefined;
  const parsed = Settings.safeParse(env);
  if (!parsed.success) {
    const names = parsed.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`).join("; ");
    throw new HoldpointError("invalid_request", `${names}. Expected one URL each, such as nats://127.0.0.1:4222`);
  }
  const { NATS_URL, NATS_USER, NATS_PASSWORD, NATS_WEBSOCKET_URL, NATS_MONITOR_URL } = parsed.data;
  const url = new URL(NATS_URL);
  const inUrl = { user: decoded(url.username), password: decoded(url.password) };
  const isNamed = NATS_USER !== undefined || NATS_PASSWORD !== undefined;
  const shared = sharedCredentials(isNamed ? { user: NATS_USER, password: NATS_PASSWORD } : inUrl);
  return {
    url: `${url.protocol}//${url.host}`,
    wsUrl: NATS_WEBSOCKET_URL,
    monitorUrl: NATS_MONITOR_URL?.replace(/\/$/, ""),
    credentialsOf: (user) => shared ?? ownCredentials(user, env),
  };
}

/**
 * The environment in which `useBroker` finds `broker` again, as `user`: for a process that one starts. The `nats` command
 * line understands it too.
 */
export function brokerEnvironment(broker: Broker, user: BrokerUser): Record<string, string> {
  const credentials = broker.credentialsOf(user);
  return {
    NATS_URL: broker.url,
    ...(credentials === undefined ? {} : { NATS_USER: credentials.user, NATS_PASSWORD: credentials.password }),
    ...(broker.wsUrl === undefined ? {} : { NATS_WEBSOCKET_URL: broker.wsUrl }),
    ...(broker.monitorUrl === undefined ? {} : { NATS_MONITOR_URL: broker.monitorUrl }),
  };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch (cause) {
    const advice = "write % as %25, or set NATS_USER and NATS_PASSWORD instead";
    throw new HoldpointError("invalid_request", `NATS_URL: its user or password is not percent-encoded: ${advice}`, {
      cause,
    });
  }
}

/** A name and its password, both or neither. */
function sharedCredentials(pair: {
  user?: string | undefined;
  password?: string | undefined;
}): Credentials | undefined {
  const { user = "", password = "" } = pair;
  if (user === "" && password === "") return undefined;
  if (user !== "" && password !== "") return credentialsOf(user, password);
  const [have, lack] = user === "" ? ["a password", "a user"] : ["a user", "a password"];
  const advice = "set both NATS_USER and NATS_PASSWORD, or neither";
  throw new HoldpointError("invalid_request", `the broker is named with ${have} and without ${lack}: ${advice}`);
}

function ownCredentials(user: BrokerUser, env: Environment): Credentials | undefined {
  const password = env[passwordVariable(user)];
  return password === undefined || password === "" ? undefined : credentialsOf(user, password);
}
