import { decodeEvents } from "@holdpoint/eventsourcing";
import { connectToRun, openParticipant, ProcessSettings, readSettings } from "@holdpoint/participant";
import { logSubject } from "@holdpoint/schemas";
import { startTestBroker, type TestBroker } from "@holdpoint/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { agentEvents, counterKind, episodeOf, seeded, writer } from "./room.ts";

let broker: TestBroker;

beforeAll(async () => {
  broker = await startTestBroker();
});

afterAll(() => broker.stop());

test("[L10] a process says how long the broker was away as soon as it is back, and what it had to say is not lost", async () => {
  const run = await broker.newRun();
  const { user, password } = broker.server.credentialsOf("agent");
  const env = { HOLDPOINT_RUN: run, NATS_URL: broker.server.url, NATS_USER: user, NATS_PASSWORD: password };
  const connections = await connectToRun("agent", readSettings(ProcessSettings, { ...env, LOG_LEVEL: "silent" }));
  const spec = { role: "agent", mode: "exported", kind: counterKind, schema: agentEvents } as const;
  const agent = await openParticipant(connections, spec);
  await agent.serve({ methods: {}, hooks: {} });
  const before = agent.clock.nowMs();

  const gone = new Promise<void>((resolve) => {
    connections.connection.onStatus(({ type }) => void (type === "disconnected" && resolve()));
  });
  await broker.server.kill();
  await gone;
  const during = agent.record(seeded(episodeOf("r1")));
  await broker.server.restart();
  await during;
  await expect.poll(() => agent.outages.length, { timeout: 60_000 }).toBe(1);

  const said: { readonly type: string; readonly timeMs: number; readonly data: object }[] = [];
  const upTo = await connections.log.lastSequence();
  await connections.log.read({ upTo, subjects: [logSubject(run, writer)] }, (message) => {
    for (const { event, timeMs } of decodeEvents(message, agentEvents).events) said.push({ ...event, timeMs });
  });
  const types = said.map(({ type }) => type);
  expect(types.toSorted()).toEqual(["participant.announced", "participant.reconnected", "session.seeded"]);
  const reconnected = said.find(({ type }) => type === "participant.reconnected");
  expect(reconnected).toMatchObject({ data: { lastAtMs: expect.any(Number) } });
  const [outage] = agent.outages;
  expect(outage?.fromMs).toBeGreaterThanOrEqual(before);
  expect(outage?.fromMs).toBeLessThan(reconnected?.timeMs ?? 0);
  await agent.stop();
  await connections.connection.close();
});
