import { ensureStream, fullness, openLog, streamPromise } from "@holdpoint/jetstream";
import { blobBucket, controlSubject, streamName } from "@holdpoint/schemas";
import { startTestBroker } from "@holdpoint/testing";
import type { StreamConfig } from "@nats-io/jetstream";
import { afterAll, expect, test } from "vitest";
import { internals } from "../src/connection.ts";

const broker = await startTestBroker();
const coordinator = await broker.connectAs("coordinator");
const { manager } = internals(coordinator);
afterAll(() => broker.stop());

const small = { maxBytes: 2 ** 22, maxBlobBytes: 2 ** 22 };

test("[L16] the streams of a run keep what is stored: on disk, nothing dropped, nothing deleted, full means refused", async () => {
  await ensureStream(coordinator, "kept", small);
  for (const name of [streamName("kept"), blobBucket("kept")]) {
    const { config } = await manager.streams.info(name);
    expect(config).toMatchObject({
      storage: "file",
      retention: "limits",
      discard: "new",
      max_bytes: small.maxBytes,
      max_age: 0,
      max_msgs: -1,
      deny_delete: true,
      allow_direct: true,
      num_replicas: 1,
    });
    expect(config.persist_mode ?? "default").toBe("default");
  }
});

test("making the streams again, and by several at once, changes nothing", async () => {
  await Promise.all([1, 2, 3].map(() => ensureStream(coordinator, "again", small)));
  const subject = controlSubject("again");
  const expected = { subject, sequence: 0 };
  await openLog(coordinator, "again").append({ subject, body: "{}", messageId: "m", expected });
  await ensureStream(coordinator, "again");
  expect(await openLog(coordinator, "again").lastSequence()).toBe(1);
});

test("streams for which the broker cannot set aside what is asked are refused, by their names", async () => {
  await expect(ensureStream(coordinator, "huge", { maxBytes: 2 ** 50 })).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("no room for HP_huge, which may grow to 1125899906842624 bytes"),
  });
});

const weak: readonly (readonly [string, Partial<StreamConfig>])[] = [
  ["storage", { storage: "memory" }],
  ["discard", { discard: "old" }],
  ["max_age", { max_age: 3_600_000_000_000 }],
  ["max_msgs", { max_msgs: 1000 }],
  ["max_bytes", { max_bytes: -1 }],
  ["deny_delete", { deny_delete: false }],
  ["allow_atomic", { allow_atomic: false }],
  ["duplicate_window", { duplicate_window: 1_000_000_000 }],
  ["max_msg_size", { max_msg_size: 1000 }],
  ["persist_mode", { persist_mode: "async", allow_atomic: false }],
  ["subjects", { subjects: ["hp.weak.control"] }],
];

test.each(weak)(
  "[L16] a stream that promises less is refused by the name of its %s, unless that is allowed",
  async (setting, change) => {
    await ensureStream(coordinator, "sound", small);
    const { config } = await manager.streams.info(streamName("sound"));
    const run = `weak-${setting}`;
    const subjects = config.subjects.map((subject) => subject.replace("sound", run));
    await manager.streams.add({ ...config, name: streamName(run), subjects, ...change });
    await expect(ensureStream(coordinator, run, { maxBlobBytes: small.maxBlobBytes })).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringMatching(new RegExp(`promises less than is needed: .*${setting} is`)),
    });
    await ensureStream(coordinator, run, { allowWeak: true, maxBlobBytes: small.maxBlobBytes });
  },
);

test("a user that may not make streams is told so", async () => {
  const agent = await broker.connectAs("agent");
  await expect(ensureStream(agent, "not-mine", small)).rejects.toMatchObject({ code: "unauthorized" });
});

test("[L16] the broker's promise is asked for: syncing is known only where monitoring tells, of that very server", async () => {
  const run = await broker.newRun();
  const { monitorUrl } = broker.server;
  const known = { serverVersion: expect.stringMatching(/^2\./), replicas: 1, persistMode: "default" };
  expect(await streamPromise(coordinator, run, { monitorUrl })).toEqual({ ...known, syncAlways: true });
  expect(await streamPromise(coordinator, run)).toEqual({ ...known, syncAlways: null });
  const nobody = "http://127.0.0.1:9";
  expect(await streamPromise(coordinator, run, { monitorUrl: nobody })).toEqual({ ...known, syncAlways: null });
  const other = await startTestBroker();
  const others = await streamPromise(coordinator, run, { monitorUrl: other.server.monitorUrl });
  await other.stop();
  expect(others.syncAlways).toBeNull();
});

test("[L16] fullness is that of the fuller stream", async () => {
  const run = await broker.newRun({ maxBytes: 100_000, maxBlobBytes: 2 ** 20 });
  const agent = await broker.connectAs("agent");
  expect(await fullness(agent, run)).toBeLessThan(0.01);
  const subject = controlSubject(run);
  const body = "x".repeat(60_000);
  await openLog(coordinator, run).append({ subject, body, messageId: "m", expected: { subject, sequence: 0 } });
  expect(await fullness(agent, run)).toBeCloseTo(0.6, 1);
});
