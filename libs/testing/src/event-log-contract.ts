/** What every event log keeps, in memory or on a broker. */
import type { Draft, EventLog, StoredMessage } from "@holdpoint/eventsourcing";
import { HoldpointError } from "@holdpoint/errors";
import { controlSubject, filters, logSubject, resultSubject, type Writer } from "@holdpoint/schemas";
import { describe, expect, test, vi } from "vitest";

export interface LogUnderTest {
  /** Empty. It takes what a coordinator may write. */
  readonly log: EventLog;
  /** The same log, in the hands of the environment: it takes results. */
  readonly environmentLog: EventLog;
  readonly run: string;
}

const decoder = new TextDecoder();

function text({ body }: StoredMessage): string {
  return decoder.decode(body);
}

/** The tests of the port, for the logs that `make` makes. */
export function eventLogContract(make: () => Promise<LogUnderTest>): void {
  describe("an event log", () => {
    appendContract(make);
    batchContract(make);
    readContract(make);
    tailContract(make);
  });
}

const agent: Writer = { role: "agent", instance: "main", worker: "0" };
const other: Writer = { role: "agent", instance: "main", worker: "1" };

/** A log with words for its subjects, and the drafts that tests write to it. */
async function open(make: () => Promise<LogUnderTest>) {
  const { log, environmentLog, run } = await make();
  const subjects = { own: logSubject(run, agent), other: logSubject(run, other), control: controlSubject(run) };
  const result = resultSubject(run, { ...agent, role: "environment" });
  let ids = 0;
  const draft = (subject: string, sequence: number, more: Partial<Draft> = {}): Draft => ({
    subject,
    body: `body ${ids}`,
    messageId: `id-${ids++}`,
    expected: { subject, sequence },
    ...more,
  });
  const append = async (subject: string, sequence: number, more: Partial<Draft> = {}) => {
    const done = await log.append(draft(subject, sequence, more));
    if (!done.stored) throw new Error(`${subject} does not end at ${sequence}`);
    return done.sequence;
  };
  /** `count` messages, in turn on the two log subjects. */
  const fill = async (count: number) => {
    const last = new Map<string, number>();
    for (let at = 0; at < count; at++) {
      const subject = at % 2 === 0 ? subjects.own : subjects.other;
      last.set(subject, await append(subject, last.get(subject) ?? 0));
    }
  };
  return { log, environmentLog, run, draft, append, fill, result, ...subjects };
}

async function readAll(log: EventLog): Promise<StoredMessage[]> {
  const found: StoredMessage[] = [];
  await log.read({ upTo: await log.lastSequence() }, (message) => found.push(message));
  return found;
}

function appendContract(make: () => Promise<LogUnderTest>): void {
  test("sequences count from 1 over all subjects", async () => {
    const { log, append, other: subject, control } = await open(make);
    expect(await log.lastSequence()).toBe(0);
    expect(await append(subject, 0)).toBe(1);
    expect(await append(control, 0)).toBe(2);
    expect(await append(subject, 1)).toBe(3);
    expect(await log.lastSequence()).toBe(3);
  });

  test("[L1] an append that expects another end of its subject is refused, and stores nothing", async () => {
    const { log, draft, append, control } = await open(make);
    await append(control, 0);
    expect(await log.append(draft(control, 0))).toEqual({ stored: false });
    expect(await log.append(draft(control, 2))).toEqual({ stored: false });
    expect(await log.lastSequence()).toBe(1);
  });

  test("[L1] of writers that expect the same end exactly one is stored", async () => {
    const { log, draft, control } = await open(make);
    const done = await Promise.all(Array.from({ length: 8 }, () => log.append(draft(control, 0))));
    expect(done.filter(({ stored }) => stored)).toEqual([{ stored: true, sequence: 1 }]);
    expect(await log.lastSequence()).toBe(1);
  });

  test("[L1] a draft that is appended again is stored once, and found", async () => {
    const { log, draft, control } = await open(make);
    const same = draft(control, 0);
    expect(await log.append(same)).toEqual({ stored: true, sequence: 1 });
    expect(await log.append(same)).toEqual({ stored: true, sequence: 1 });
    expect(await log.lastSequence()).toBe(1);
  });

  test("[L1] a result expects the end of its process's log: one fence serves both", async () => {
    const { log, environmentLog, draft, append, other: subject, result } = await open(make);
    await append(subject, 0);
    const good = draft(result, 1, { expected: { subject, sequence: 1 } });
    expect(await environmentLog.append(good)).toEqual({ stored: true, sequence: 2 });
    expect(await environmentLog.append(good)).toEqual({ stored: true, sequence: 2 });
    await append(subject, 1);
    const late = draft(result, 1, { expected: { subject, sequence: 1 } });
    expect(await environmentLog.append(late)).toEqual({ stored: false });
    expect(await log.lastSequence()).toBe(3);
  });
}

function batchContract(make: () => Promise<LogUnderTest>): void {
  test("[L4] a cut is stored whole where every guarded subject ends where its announcement was", async () => {
    const { log, draft, append, other: subject, control, result } = await open(make);
    await append(control, 0);
    await append(subject, 0);
    const cut = [
      draft(control, 1),
      draft(control, 0, { expected: { subject, sequence: 2 } }),
      draft(control, 0, { expected: { subject: result, sequence: 0 } }),
    ];
    expect(await log.appendBatch(cut)).toEqual({ stored: true, sequence: 5 });
    expect((await readAll(log)).slice(2).map(({ messageId }) => messageId)).toEqual(
      cut.map(({ messageId }) => messageId),
    );
  });

  test("[L4] a cut is refused whole where a guarded subject has moved, first or last in the batch", async () => {
    const { log, draft, append, other: subject, control } = await open(make);
    await append(control, 0);
    await append(subject, 0);
    await append(subject, 2);
    const stale = draft(control, 0, { expected: { subject, sequence: 2 } });
    const holds = draft(control, 0, { expected: { subject: "hp.nobody", sequence: 0 } });
    expect(await log.appendBatch([draft(control, 1), stale, holds])).toEqual({ stored: false });
    expect(await log.appendBatch([draft(control, 1), holds, stale])).toEqual({ stored: false });
    expect(await log.appendBatch([draft(control, 0), holds])).toEqual({ stored: false });
    expect(await log.lastSequence()).toBe(3);
  });

  test("a batch that is appended again is stored once, and found", async () => {
    const { log, draft, other: subject, control } = await open(make);
    const same = [draft(control, 0), draft(subject, 0)];
    expect(await log.appendBatch(same)).toEqual({ stored: true, sequence: 2 });
    expect(await log.appendBatch(same)).toEqual({ stored: true, sequence: 2 });
    expect(await log.lastSequence()).toBe(2);
  });

  test("a batch may hold one message and 1,000, not none and not more", async () => {
    const { log, draft, control, other: subject } = await open(make);
    const guards = (count: number) => Array.from({ length: count }, (_, at) => draft(`${subject}${at}`, 0));
    expect(await log.appendBatch([draft(control, 0)])).toEqual({ stored: true, sequence: 1 });
    expect(await log.appendBatch(guards(1000))).toEqual({ stored: true, sequence: 1001 });
    for (const wrong of [[], guards(1001)]) {
      await expect(log.appendBatch(wrong)).rejects.toMatchObject({ code: "invalid_request" });
    }
    expect(await log.lastSequence()).toBe(1001);
  });
}

function readContract(make: () => Promise<LogUnderTest>): void {
  test("a message is read as it was written, from wherever it is asked for", async () => {
    const { log, append, control } = await open(make);
    const body = JSON.stringify({ text: "ünïcödé €\u0000" });
    await append(control, 0, { body, messageId: "the-id", controlPlane: true });
    await append(control, 1, { messageId: "not-control" });
    const [first, second] = await readAll(log);
    if (first === undefined || second === undefined) throw new Error("two were written");
    for (const found of [first, await log.get(1)]) {
      expect(found).toMatchObject({ sequence: 1, subject: control, messageId: "the-id", controlPlane: true });
      expect(text(found)).toBe(body);
      expect(found.timeMs).toBe(first.timeMs);
    }
    expect(second).toMatchObject({ sequence: 2, messageId: "not-control", controlPlane: false });
    expect(second.timeMs).toBeGreaterThan(first.timeMs);
  });

  test("the last message of a subject is found, and none where it is empty", async () => {
    const { log, append, control, other: subject } = await open(make);
    await append(control, 0);
    await append(subject, 0);
    expect(await log.lastOn(control)).toMatchObject({ sequence: 1, messageId: "id-0" });
    expect(await log.lastOn(`${subject}x`)).toBeUndefined();
    await expect(log.get(3)).rejects.toMatchObject({ code: "not_found" });
  });

  test("a read delivers exactly its range, in order", async () => {
    const { log, fill } = await open(make);
    await fill(20);
    const found: number[] = [];
    await log.read({ from: 5, upTo: 14 }, ({ sequence }) => found.push(sequence));
    expect(found).toEqual([5, 6, 7, 8, 9, 10, 11, 12, 13, 14]);
  });

  test("a filtered read ends at its bound also where no message of the filter is there", async () => {
    const { log, run, append, fill, other: subject, control } = await open(make);
    await fill(10);
    await append(control, 0);
    const found: number[] = [];
    await log.read({ upTo: 11, subjects: [subject] }, ({ sequence }) => found.push(sequence));
    expect(found).toEqual([2, 4, 6, 8, 10]);
    found.length = 0;
    await log.read({ from: 8, upTo: 11, subjects: [controlSubject(run), filters.logs(run)] }, ({ sequence }) =>
      found.push(sequence),
    );
    expect(found).toEqual([8, 9, 10, 11]);
    await log.read({ upTo: 11, subjects: [filters.results(run)] }, () => expect.unreachable());
  });

  test("[L15] a read up to a sequence that is not there fails, and says so", async () => {
    const { log, fill } = await open(make);
    await fill(3);
    await expect(log.read({ upTo: 4 }, () => undefined)).rejects.toMatchObject({ code: "invalid_checkpoint_state" });
  });

  test("what a reader throws ends its read", async () => {
    const { log, fill } = await open(make);
    await fill(3);
    const wrong = new HoldpointError("not_found", "wrong");
    const seen: number[] = [];
    const reading = log.read({ upTo: 3 }, ({ sequence }) => {
      seen.push(sequence);
      throw wrong;
    });
    await expect(reading).rejects.toBe(wrong);
    expect(seen).toEqual([1]);
    expect(await readAll(log)).toHaveLength(3);
  });
}

function tailContract(make: () => Promise<LogUnderTest>): void {
  test("a tail delivers what was there and what comes, from where it was asked to, until it is stopped", async () => {
    const { log, append, fill, control } = await open(make);
    await fill(5);
    const seen: number[] = [];
    const tail = await log.tail({ from: 3 }, ({ sequence }) => seen.push(sequence));
    await append(control, 0);
    await vi.waitFor(() => expect(seen).toEqual([3, 4, 5, 6]), { timeout: 30_000 });
    expect(tail.last).toBe(6);
    await tail.stop();
    await tail.ended;
    await append(control, 6);
    await readAll(log);
    expect(seen).toEqual([3, 4, 5, 6]);
  });

  test("a tail delivers the subjects of its filters alone", async () => {
    const { log, append, fill, control, other: subject } = await open(make);
    await fill(4);
    const seen: number[] = [];
    const tail = await log.tail({ from: 1, subjects: [subject, control] }, ({ sequence }) => seen.push(sequence));
    await append(control, 0);
    await append(subject, 4);
    await vi.waitFor(() => expect(seen).toEqual([2, 4, 5, 6]), { timeout: 30_000 });
    await tail.stop();
  });
}
