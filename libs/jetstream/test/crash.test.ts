import type { Draft, EventLog } from "@holdpoint/eventsourcing";
import { openLog } from "@holdpoint/jetstream";
import { controlSubject, logSubject } from "@holdpoint/schemas";
import { startTestBroker } from "@holdpoint/testing";
import { afterAll, expect, test, vi } from "vitest";

const broker = await startTestBroker();
afterAll(() => broker.stop());

const kills = 6;
const appendsOfEach = 900;
const batches = 60;
const batchSize = 5;
const total = 3 * appendsOfEach + batches * batchSize;

/** Appends ids `subject/0`, `subject/1` … one after the other, as a process does. */
async function write(log: EventLog, subject: string, progress: () => void): Promise<void> {
  let sequence = 0;
  for (let at = 0; at < appendsOfEach; at++) {
    const draft = { subject, body: "{}", messageId: `${subject}/${at}`, expected: { subject, sequence } };
    const done = await log.append(draft);
    if (!done.stored) throw new Error(`${subject} was fenced at ${at} by nobody`);
    ({ sequence } = done);
    progress();
  }
}

/** The same with batches, each guarded by its own end and the end of a subject that is empty. */
async function writeBatches(log: EventLog, subject: string, progress: () => void): Promise<void> {
  let sequence = 0;
  const idle = { subject: `${subject}.idle`, sequence: 0 };
  for (let batch = 0; batch < batches; batch++) {
    const drafts = Array.from({ length: batchSize }, (_, at): Draft => {
      const expected = at === 0 ? { subject, sequence } : idle;
      return { subject, body: "{}", messageId: `${subject}/${batch * batchSize + at}`, expected };
    });
    const done = await log.appendBatch(drafts);
    if (!done.stored) throw new Error(`${subject} was fenced at batch ${batch} by nobody`);
    ({ sequence } = done);
    progress();
  }
}

test("[L1] thousands of appends under repeated kill -9 of the server: none lost, none doubled, all in order, seen by a tail without a gap", async () => {
  const run = await broker.newRun();
  const connections = await Promise.all(Array.from({ length: 5 }, () => broker.connectAs("coordinator")));
  const [own, ...others] = connections.map((connection) => openLog(connection, run));
  if (own === undefined) throw new Error("there are five");
  const seen: number[] = [];
  const tail = await own.tail({ from: 1 }, ({ sequence }) => seen.push(sequence));
  let appends = 0;
  const progress = () => void appends++;
  const subjects = [0, 1, 2].map((worker) =>
    logSubject(run, { role: "agent", instance: "main", worker: String(worker) }),
  );
  const control = controlSubject(run);
  const writing = Promise.all([
    ...subjects.map((subject, at) => write(others[at] ?? own, subject, progress)),
    writeBatches(others[3] ?? own, control, progress),
  ]);
  const allAppends = subjects.length * appendsOfEach + batches;
  for (let kill = 1; kill <= kills; kill++) {
    const enough = (allAppends * kill) / (kills + 1);
    await vi.waitFor(() => expect(appends).toBeGreaterThan(enough), { timeout: 60_000, interval: 5 });
    await broker.server.kill();
    await broker.server.restart();
  }
  await writing;

  expect(await own.lastSequence()).toBe(total);
  const ids = new Map([...subjects, control].map((subject) => [subject, new Array<string>()]));
  await own.read({ upTo: total }, ({ subject, messageId }) => ids.get(subject)?.push(messageId));
  for (const [subject, found] of ids) expect(found).toEqual(found.map((_, at) => `${subject}/${at}`));
  expect([...ids.values()].map(({ length }) => length)).toEqual([
    ...subjects.map(() => appendsOfEach),
    batches * batchSize,
  ]);
  await vi.waitFor(() => expect(seen).toHaveLength(total), { timeout: 60_000, interval: 20 });
  expect(seen).toEqual(seen.map((_, at) => at + 1));
  await tail.stop();
});
