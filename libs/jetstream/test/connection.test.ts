import { connectTo, type ConnectionStatus } from "@holdpoint/jetstream";
import { FaultyProxy, startTestBroker } from "@holdpoint/testing";
import { createServer, type Server } from "node:net";
import { afterAll, expect, test, vi } from "vitest";
import { internals } from "../src/connection.ts";

const broker = await startTestBroker();
const proxy = await FaultyProxy.before(broker.server.url);
afterAll(async () => {
  await broker.stop();
  await proxy.close();
});

const patient = { timeout: 60_000, interval: 20 };
const decoder = new TextDecoder();

let rollouts = 0;
/** A subject that the model may listen to, and that no other test uses. */
function freshSubject(): string {
  return `hp.demo.rpc.r${rollouts++}.0.model.close`;
}

/** Something that says of itself what `info` says, and answers pings. */
async function serverThatSays(info: object): Promise<{ url: string; server: Server }> {
  const server = createServer((socket) => {
    socket.write(`INFO ${JSON.stringify({ server_id: "X", max_payload: 1_048_576, headers: true, ...info })}\r\n`);
    socket.on("data", (data) => void (data.includes("PING") && socket.write("PONG\r\n")));
    socket.on("error", () => undefined);
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return { url: `nats://127.0.0.1:${port}`, server };
}

test.each([
  [
    "an old version",
    { version: "2.12.4", jetstream: true, api_lvl: 2 },
    "it is nats-server 2.12.4, and 2.14 is needed",
  ],
  ["a low API level", { version: "2.14.0", jetstream: true, api_lvl: 3 }, "2.14 is needed"],
  [
    "no JetStream",
    { version: "2.15.2", api_lvl: 5 },
    "JetStream is switched off; start it with the nats.conf of Holdpoint",
  ],
])("a server with %s is refused, with what to do", async (_, info, message) => {
  const { url, server } = await serverThatSays(info);
  await expect(connectTo({ url, name: "test" })).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining(message),
  });
  server.close();
});

test("where nobody listens the first connect is tried for its time, and fails with `unavailable`", async () => {
  const started = connectTo({ url: "nats://127.0.0.1:9", name: "test", patienceMs: 300 });
  await expect(started).rejects.toMatchObject({ code: "unavailable" });
  const aborted = connectTo({ url: "nats://127.0.0.1:9", name: "test", signal: AbortSignal.abort() });
  await expect(aborted).rejects.toMatchObject({ code: "unavailable" });
});

test("a first connect waits for a broker that comes later", async () => {
  proxy.goDown();
  const { password } = broker.server.credentialsOf("agent");
  const connecting = connectTo({ url: proxy.url, user: "agent", password, name: "test", patienceMs: 60_000 });
  await vi.waitFor(() => expect(proxy.turnedAway).toBeGreaterThan(1), patient);
  proxy.heal();
  const connection = await connecting;
  expect(connection.isConnected).toBe(true);
  await connection.close();
});

test("a wrong password is `unauthorized`, at once", async () => {
  const connecting = connectTo({ url: broker.server.url, user: "agent", password: "wrong", name: "test" });
  await expect(connecting).rejects.toMatchObject({ code: "unauthorized" });
});

test("answers go to inboxes that only their user may read", async () => {
  const [agent, model] = await Promise.all([broker.connectAs("agent"), broker.connectAs("model")]);
  const inboxes: (string | undefined)[] = [];
  const { nats } = internals(model);
  const subject = freshSubject();
  nats.subscribe(subject, { callback: (_, message) => void (inboxes.push(message.reply), message.respond("")) });
  await nats.flush();
  await agent.request(subject, "");
  expect(inboxes).toEqual([expect.stringMatching(/^_INBOX_agent\./)]);
  const statuses: ConnectionStatus[] = [];
  model.onStatus((status) => statuses.push(status));
  await model.subscribe("_INBOX_agent.>", () => expect.unreachable());
  await vi.waitFor(
    () => expect(statuses).toContainEqual({ type: "fault", error: expect.objectContaining({ code: "unauthorized" }) }),
    patient,
  );
});

test("a subscriber answers requests, over a broken connection, until it is stopped", async () => {
  const [agent, model] = await Promise.all([broker.connectAs("agent"), broker.connectAs("model", proxy.url)]);
  const subject = freshSubject();
  const subscription = await model.subscribe(subject, (message) => {
    message.respond(`${message.subject} ${decoder.decode(message.data)}`);
  });
  const ask = async () => decoder.decode(await agent.request(subject, "now"));
  expect(await ask()).toBe(`${subject} now`);
  proxy.heal();
  await vi.waitFor(async () => expect(await ask()).toBe(`${subject} now`), patient);
  subscription.stop();
  await vi.waitFor(() => expect(ask()).rejects.toMatchObject({ code: "unavailable" }), patient);
});

test("after a round trip all has been handed on that the broker had before; it fails where the connection is down", async () => {
  const [agent, model] = await Promise.all([broker.connectAs("agent"), broker.connectAs("model", proxy.url)]);
  const subject = freshSubject();
  let heard = 0;
  await model.subscribe(subject, () => void heard++);
  for (let sent = 0; sent < 1000; sent++) agent.publish(subject, "");
  await agent.roundTrip(); // now the broker has them
  await model.roundTrip();
  expect(heard).toBe(1000);
  proxy.goDown();
  await vi.waitFor(() => expect(model.isConnected).toBe(false), patient);
  await expect(model.roundTrip()).rejects.toMatchObject({ code: "unavailable" });
  proxy.heal();
  await vi.waitFor(() => model.roundTrip(), patient);
});

test("a handler that throws or rejects is a fault that is told, and the connection goes on", async () => {
  const [agent, model] = await Promise.all([broker.connectAs("agent"), broker.connectAs("model")]);
  const faults: unknown[] = [];
  model.onStatus((status) => status.type === "fault" && faults.push(status.error.message));
  const subject = freshSubject();
  await model.subscribe(subject, ({ data, respond }) => {
    respond("heard");
    if (data.length === 1) throw new Error("thrown");
    return Promise.reject(new Error("rejected"));
  });
  for (const body of ["1", "22"]) await agent.request(subject, body);
  await vi.waitFor(() => expect(faults).toEqual(["thrown", "rejected"]), patient);
  expect(model.isConnected).toBe(true);
});

test("a request fails with `unavailable`: when time is up, when its connection breaks, when it is given up", async () => {
  const [agent, model] = await Promise.all([broker.connectAs("agent", proxy.url), broker.connectAs("model")]);
  let heard = 0;
  const subject = freshSubject();
  await model.subscribe(subject, () => void heard++);
  const unavailable = { code: "unavailable" };
  await expect(agent.request(subject, "", { timeoutMs: 50 })).rejects.toMatchObject(unavailable);
  const broken = agent.request(subject, "", { timeoutMs: 100_000 });
  await vi.waitFor(() => expect(heard).toBe(2), patient);
  proxy.heal();
  await expect(broken).rejects.toMatchObject({
    ...unavailable,
    message: expect.stringContaining("the connection broke"),
  });
  const giving = new AbortController();
  const given = agent.request(subject, "", { timeoutMs: 100_000, signal: giving.signal });
  await vi.waitFor(() => expect(heard).toBe(3), patient);
  giving.abort();
  await expect(given).rejects.toMatchObject(unavailable);
});

test("a request that is made while the broker is away is sent when it is back", async () => {
  const [agent, model] = await Promise.all([broker.connectAs("agent", proxy.url), broker.connectAs("model")]);
  const subject = freshSubject();
  await model.subscribe(subject, ({ respond }) => respond("here"));
  proxy.goDown();
  await vi.waitFor(() => expect(agent.isConnected).toBe(false), patient);
  const asking = agent.request(subject, "", { timeoutMs: 60_000 });
  proxy.heal();
  expect(decoder.decode(await asking)).toBe("here");
});

test("the states of a connection are told, and what waits on a closed one fails", async () => {
  const agent = await broker.connectAs("agent", proxy.url);
  const types: string[] = [];
  agent.onStatus(({ type }) => types.push(type));
  proxy.heal();
  await vi.waitFor(() => expect(types).toEqual(["disconnected", "connected"]), patient);
  proxy.goDown();
  await vi.waitFor(() => expect(types).toEqual(["disconnected", "connected", "disconnected"]), patient);
  const waiting = agent.whenConnected("the test");
  await agent.close();
  await expect(waiting).rejects.toMatchObject({ code: "unavailable" });
  await vi.waitFor(() => expect(types.at(-1)).toBe("closed"), patient);
  expect(agent.isClosed).toBe(true);
  expect(() => agent.publish("hp.demo.rpc.x", "")).toThrow(expect.objectContaining({ code: "unavailable" }));
  await expect(agent.request("hp.demo.rpc.x", "")).rejects.toMatchObject({ code: "unavailable" });
  await agent.drain();
  proxy.heal();
});

test("draining hands over what was received, and closes", async () => {
  const model = await broker.connectAs("model");
  await model.drain();
  expect(model.isClosed).toBe(true);
});
