import type { Draft, EventLog, StoredMessage } from "@holdpoint/eventsourcing";
import { ensureStream, openLog, publishCommand } from "@holdpoint/jetstream";
import { commandSubject, controlSubject, logSubject, resultSubject } from "@holdpoint/schemas";
import { FaultyProxy, startTestBroker } from "@holdpoint/testing";
import { afterAll, expect, test, vi } from "vitest";

const broker = await startTestBroker();
const proxy = await FaultyProxy.before(broker.server.url);
const coordinator = await broker.connectAs("coordinator");
afterAll(async () => {
  await broker.stop();
  await proxy.close();
});

const patient = { timeout: 60_000, interval: 20 };

function draft(subject: string, sequence: number, more: Partial<Draft> = {}): Draft {
  return { subject, body: "{}", messageId: `${subject} after ${sequence}`, expected: { subject, sequence }, ...more };
}

/** A run, its log by a sound way and by the faulty one, over connections that no other test has broken, and subjects in it. */
async function open() {
  const run = await broker.newRun();
  const faulty = await broker.connectAs("coordinator", proxy.url);
  const faultyEnvironment = await broker.connectAs("environment", proxy.url);
  const writer = { role: "environment", instance: "main", worker: "0" } as const;
  return {
    run,
    faulty,
    sound: openLog(coordinator, run),
    log: openLog(faulty, run),
    environmentLog: openLog(faultyEnvironment, run),
    subject: logSubject(run, writer),
    result: resultSubject(run, writer),
    control: controlSubject(run),
  };
}

async function messageIds(log: EventLog): Promise<string[]> {
  const found: StoredMessage[] = [];
  await log.read({ upTo: await log.lastSequence() }, (message) => found.push(message));
  return found.map(({ messageId }) => messageId);
}

/** Lets the broker take what `append` sends until its log ends at `upTo`, and loses what it answers (from `from` on). */
async function loseTheAnswer<T>(sound: EventLog, upTo: number, append: () => Promise<T>, from?: string): Promise<T> {
  proxy.loseAnswers(from);
  const appending = append();
  await vi.waitFor(async () => expect(await sound.lastSequence()).toBe(upTo), patient);
  proxy.heal();
  return appending;
}

test("[L1] an append whose acknowledgement was lost is found to be stored, and is stored once", async () => {
  const { sound, log, subject } = await open();
  await log.append(draft(subject, 0));
  const done = await loseTheAnswer(sound, 2, () => log.append(draft(subject, 1)));
  expect(done).toEqual({ stored: true, sequence: 2 });
  expect(await log.append(draft(subject, 2))).toEqual({ stored: true, sequence: 3 });
  expect(await messageIds(sound)).toEqual([0, 1, 2].map((sequence) => `${subject} after ${sequence}`));
});

test("[L1] a result whose acknowledgement was lost is found on its own subject, although it expects the end of another", async () => {
  const { sound, environmentLog, subject, result } = await open();
  await environmentLog.append(draft(subject, 0));
  const ended = draft(result, 0, { expected: { subject, sequence: 1 } });
  const done = await loseTheAnswer(sound, 2, () => environmentLog.append(ended));
  expect(done).toEqual({ stored: true, sequence: 2 });
  expect(await sound.lastSequence()).toBe(2);
});

test("[L1] an append is found also where its lost acknowledgement was followed by the fence of a successor", async () => {
  const { sound, log, subject } = await open();
  proxy.loseAnswers();
  const appending = log.append(draft(subject, 0, { messageId: "mine" }));
  await vi.waitFor(async () => expect(await sound.lastSequence()).toBe(1), patient);
  expect(await sound.append(draft(subject, 1, { messageId: "fence" }))).toEqual({ stored: true, sequence: 2 });
  proxy.heal();
  expect(await appending).toEqual({ stored: true, sequence: 1 });
  expect(await log.append(draft(subject, 1, { messageId: "late" }))).toEqual({ stored: false });
  expect(await messageIds(sound)).toEqual(["mine", "fence"]);
});

test("[L4] a batch whose acknowledgement was lost is found to be stored, and is stored once", async () => {
  const { sound, log, subject, control } = await open();
  await log.append(draft(subject, 0));
  const guard = draft(control, 0, { messageId: "guard", expected: { subject, sequence: 1 } });
  const batch = [draft(control, 0, { messageId: "cut" }), guard];
  expect(await loseTheAnswer(sound, 3, () => log.appendBatch(batch), '"count":2')).toEqual({
    stored: true,
    sequence: 3,
  });
  expect(await messageIds(sound)).toEqual([`${subject} after 0`, "cut", "guard"]);
});

test("[L4] a batch that broke off before its end is stored once, whole, by another try", async () => {
  const { sound, log, control, subject } = await open();
  const before = proxy.answersLost;
  proxy.loseAnswers();
  const appending = log.appendBatch([draft(control, 0), draft(subject, 0)]);
  await vi.waitFor(() => expect(proxy.answersLost).toBeGreaterThan(before), patient);
  expect(await sound.lastSequence()).toBe(0);
  proxy.heal();
  expect(await appending).toEqual({ stored: true, sequence: 2 });
  expect(await messageIds(sound)).toEqual([`${control} after 0`, `${subject} after 0`]);
});

test("what is appended while the broker is away is stored when it is back", async () => {
  const { faulty, sound, log, subject, control } = await open();
  proxy.goDown();
  await vi.waitFor(() => expect(faulty.isConnected).toBe(false), patient);
  const appending = [log.append(draft(subject, 0)), log.appendBatch([draft(control, 0), draft(`${subject}x`, 0)])];
  proxy.heal();
  expect(await Promise.all(appending)).toEqual([
    { stored: true, sequence: expect.any(Number) },
    { stored: true, sequence: expect.any(Number) },
  ]);
  expect(await sound.lastSequence()).toBe(3);
});

test("an append that its caller gives up fails with `unavailable`, and nothing is stored later", async () => {
  const { faulty, sound, log, subject } = await open();
  proxy.goDown();
  await vi.waitFor(() => expect(faulty.isConnected).toBe(false), patient);
  const giving = new AbortController();
  const appending = log.append(draft(subject, 0), giving.signal);
  giving.abort();
  await expect(appending).rejects.toMatchObject({ code: "unavailable" });
  proxy.heal();
  await faulty.whenConnected("the test");
  expect(await log.append(draft(subject, 0, { messageId: "next" }))).toEqual({ stored: true, sequence: 1 });
  expect(await messageIds(sound)).toEqual(["next"]);
});

test("subjects with wildcards, blanks or empty tokens are refused as what is written and as what is expected", async () => {
  const { run, sound, subject, control } = await open();
  const wrong = ["log.>", "log.*.a", "log..a", "log.a b", "log.a\n", "log.", "log.é\u0000"].map(
    (tail) => `hp.${run}.${tail}`,
  );
  for (const bad of ["", ...wrong]) {
    await expect(sound.append(draft(bad, 0))).rejects.toMatchObject({ code: "invalid_request" });
    const guarded = draft(subject, 0, { expected: { subject: bad, sequence: 0 } });
    await expect(sound.append(guarded)).rejects.toMatchObject({ code: "invalid_request" });
    await expect(sound.appendBatch([draft(control, 0), guarded])).rejects.toMatchObject({ code: "invalid_request" });
  }
  expect(await sound.lastSequence()).toBe(0);
});

test("a message that can never be stored is refused at once: too large, on a foreign subject, without an id, not allowed", async () => {
  const { run, sound, environmentLog, subject, control } = await open();
  const huge = { body: "x".repeat(2 ** 20 + 1) };
  await expect(sound.append(draft(subject, 0, huge))).rejects.toMatchObject({ code: "invalid_request" });
  await expect(sound.append(draft(subject, 0, { messageId: "" }))).rejects.toMatchObject({ code: "invalid_request" });
  const elsewhere = await broker.newRun();
  await expect(sound.append(draft(controlSubject(elsewhere), 0))).rejects.toMatchObject({
    code: "invalid_checkpoint_state",
    message: expect.stringContaining(`HP_${elsewhere} has taken it, not HP_${run}`),
  });
  await expect(environmentLog.append(draft(control, 0))).rejects.toMatchObject({ code: "unauthorized" });
  expect(await sound.lastSequence()).toBe(0);
});

test("a full stream stops an append where it is, says so, and the append goes on when there is room", async () => {
  const run = await broker.newRun({ maxBytes: 16_384 });
  const onTrouble = vi.fn();
  const log = openLog(coordinator, run, { onTrouble });
  const subject = controlSubject(run);
  const body = "x".repeat(4096);
  let stored = 0;
  const filling = (async () => {
    while (stored < 8) {
      const done = await log.append(draft(subject, stored, { body }));
      if (!done.stored) throw new Error("refused");
      stored = done.sequence;
    }
  })();
  await vi.waitFor(
    () => expect(onTrouble).toHaveBeenCalledWith(expect.stringContaining("maximum bytes exceeded")),
    patient,
  );
  expect(stored).toBe(3);
  expect(onTrouble).toHaveBeenCalledTimes(1);
  await ensureStream(coordinator, run, { maxBytes: 65_536 });
  await filling;
  expect(onTrouble).toHaveBeenLastCalledWith(undefined);
  expect(await log.lastSequence()).toBe(8);
});

test("a command that cannot be stored is given up when it is told to, and is not stored when there is room", async () => {
  const run = await broker.newRun({ maxBytes: 16_384 });
  const subject = commandSubject(run, "prepare");
  const big = { subject, body: "x".repeat(4096) };
  for (const messageId of ["1", "2", "3"]) await publishCommand(coordinator, run, { ...big, messageId });
  const late = publishCommand(coordinator, run, { ...big, messageId: "late" }, AbortSignal.timeout(100));
  await expect(late).rejects.toMatchObject({ code: "unavailable" });
  await ensureStream(coordinator, run, { maxBytes: 65_536 });
  expect(await publishCommand(coordinator, run, { ...big, messageId: "next" })).toBe(4);
  expect(await messageIds(openLog(coordinator, run))).toEqual(["1", "2", "3", "next"]);
});
