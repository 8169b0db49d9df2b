import type { Broker, BrokerUser } from "@holdpoint/broker";
import { connect, type NatsConnection } from "nats";
import { vi } from "vitest";

/** A connection as `user`, which rides out a restart of the broker. */
export async function connectAs(broker: Broker, user: BrokerUser): Promise<NatsConnection> {
  const credentials = broker.credentialsOf(user);
  if (credentials === undefined) throw new Error(`no credentials of ${user}`);
  return connect({
    servers: broker.url,
    user: credentials.user,
    pass: credentials.password,
    inboxPrefix: credentials.inboxPrefix,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 50,
    reconnectJitter: 10,
  });
}

/** Waits until `connection` has found the restarted broker: what is sent before is lost. */
export async function reconnected(connection: NatsConnection): Promise<void> {
  await vi.waitFor(() => connection.rtt(), { timeout: 60_000, interval: 20 });
}

/** The answer of the JetStream API, errors included. */
export async function api(
  connection: NatsConnection,
  subject: string,
  request: object,
): Promise<Record<string, unknown>> {
  const answer = await connection.request(`$JS.API.${subject}`, JSON.stringify(request), { timeout: 10_000 });
  return answer.json<Record<string, unknown>>();
}

/** Makes the stream of run `d` as the coordinator. */
export async function makeStream(broker: Broker): Promise<void> {
  const coordinator = await connectAs(broker, "coordinator");
  const subjects = ["hp.d.cmd.>", "hp.d.outcome.>", "hp.d.control", "hp.d.log.>", "hp.d.result.>"];
  const made = await api(coordinator, "STREAM.CREATE.HP_d", {
    name: "HP_d",
    subjects,
    storage: "file",
    allow_direct: true,
  });
  if (made["error"] !== undefined) throw new Error(JSON.stringify(made["error"]));
  await coordinator.close();
}
