/** The log in memory keeps what the port promises. */
import { type Draft, MemoryLog, type StoredMessage } from "@holdpoint/eventsourcing";
import { describe, expect, test } from "vitest";

let drafted = 0;

/** A message for `subject`, which has to end at `sequence`. */
function draft(subject: string, sequence: number, more: Partial<Draft> = {}): Draft {
  drafted += 1;
  return { subject, body: `${subject} ${drafted}`, messageId: `m${drafted}`, expected: { subject, sequence }, ...more };
}

/** Messages for as many subjects. */
function manyDrafts(count: number): readonly Draft[] {
  return Array.from({ length: count }, (_, index) => draft(`s${index}`, 0));
}

function textOf({ body }: StoredMessage): string {
  return new TextDecoder().decode(body);
}

/** A log that holds a message for each of these subjects, in order. */
async function logOf(...subjects: readonly string[]): Promise<MemoryLog> {
  const log = new MemoryLog();
  for (const subject of subjects) await log.append(draft(subject, (await log.lastOn(subject))?.sequence ?? 0));
  return log;
}

async function sequencesOf(log: MemoryLog, options: Parameters<MemoryLog["read"]>[0]): Promise<readonly number[]> {
  const found: number[] = [];
  await log.read(options, ({ sequence }) => found.push(sequence));
  return found;
}

describe("an append", () => {
  test("is stored after all that was stored before, and read back as it was written", async () => {
    const log = new MemoryLog("HP_x", () => 17.5);
    const one = draft("a", 0, { body: "é", controlPlane: true });
    expect(await log.append(one)).toEqual({ stored: true, sequence: 1 });
    expect(await log.append(draft("b", 0))).toEqual({ stored: true, sequence: 2 });
    const stored = await log.get(1);
    expect(stored).toMatchObject({
      sequence: 1,
      subject: "a",
      messageId: one.messageId,
      timeMs: 17.5,
      controlPlane: true,
    });
    expect(textOf(stored)).toBe("é");
    expect((await log.get(2)).controlPlane).toBe(false);
    expect(log.stream).toBe("HP_x");
  });

  test("takes the number of messages for the time, where no clock is given", async () => {
    const log = await logOf("a", "b");
    expect([(await log.get(1)).timeMs, (await log.get(2)).timeMs]).toEqual([0, 1]);
    expect(log.stream).toBe("HP_memory");
  });

  test("[L1] is refused where its subject ends elsewhere, and leaves nothing", async () => {
    const log = await logOf("a", "a");
    for (const sequence of [0, 1, 3]) expect(await log.append(draft("a", sequence))).toEqual({ stored: false });
    expect(await log.lastSequence()).toBe(2);
    expect(await log.append(draft("a", 2))).toEqual({ stored: true, sequence: 3 });
  });

  test("[L1] of the same draft again is known, also after others, and stored once", async () => {
    const log = new MemoryLog();
    const one = draft("a", 0);
    expect(await log.append(one)).toEqual({ stored: true, sequence: 1 });
    await log.append(draft("b", 0));
    expect(await log.append(one)).toEqual({ stored: true, sequence: 1 });
    await log.append(draft("a", 1));
    expect(await log.append(one)).toEqual({ stored: true, sequence: 1 });
    expect(await log.lastSequence()).toBe(3);
  });

  test("may expect the end of another subject", async () => {
    const log = await logOf("log");
    const result = draft("result", 0, { expected: { subject: "log", sequence: 1 } });
    expect(await log.append(result)).toEqual({ stored: true, sequence: 2 });
    const second = draft("result", 0, { expected: { subject: "log", sequence: 1 } });
    expect(await log.append(second)).toEqual({ stored: true, sequence: 3 });
    for (const [same, sequence] of [
      [result, 2],
      [second, 3],
    ] as const) {
      expect(await log.append(same)).toEqual({ stored: true, sequence });
    }
    await log.append(draft("log", 1));
    expect(await log.append(draft("result", 0, { expected: { subject: "log", sequence: 1 } }))).toEqual({
      stored: false,
    });
  });

  test("without a message id is refused", async () => {
    const nameless = new MemoryLog().append(draft("a", 0, { messageId: "" }));
    await expect(nameless).rejects.toMatchObject({
      code: "invalid_request",
      message: "a message for a has no message id",
    });
  });
});

describe("a batch", () => {
  test("is stored as a whole, and gives the sequence of its last message", async () => {
    const log = await logOf("a");
    expect(await log.appendBatch([draft("a", 1), draft("b", 0), draft("c", 0)])).toEqual({ stored: true, sequence: 4 });
    expect(await sequencesOf(log, { upTo: 4 })).toEqual([1, 2, 3, 4]);
  });

  test("of which one expectation does not hold leaves nothing", async () => {
    const log = await logOf("a");
    expect(await log.appendBatch([draft("b", 0), draft("a", 0)])).toEqual({ stored: false });
    expect(await log.lastSequence()).toBe(1);
  });

  test("that is stored already is known, also after its subjects have gone on", async () => {
    const log = await logOf("log");
    const guard = draft("control", 0, { expected: { subject: "log", sequence: 1 } });
    const batch = [guard, draft("outcome", 0), draft("other", 0)];
    expect(await log.appendBatch(batch)).toEqual({ stored: true, sequence: 4 });
    await log.append(draft("other", 4));
    expect(await log.appendBatch(batch)).toEqual({ stored: true, sequence: 4 });
    expect(await log.lastSequence()).toBe(5);
  });

  test("holds 1 to 1,000 messages", async () => {
    const log = new MemoryLog();
    await expect(log.appendBatch([])).rejects.toThrow("a batch holds 1 to 1000 messages, not 0");
    await expect(log.appendBatch(manyDrafts(1001))).rejects.toMatchObject({
      code: "invalid_request",
      details: { count: 1001 },
    });
    expect(await log.appendBatch(manyDrafts(1000))).toEqual({ stored: true, sequence: 1000 });
  });

  test("with an expectation about what it has itself written before is refused", async () => {
    const log = new MemoryLog();
    const twice = [draft("a", 0), draft("a", 0)];
    await expect(log.appendBatch(twice)).rejects.toMatchObject({
      code: "invalid_request",
      message: "an expectation about a comes after a message for it in the same batch",
      details: { subject: "a" },
    });
    const guarded = [draft("b", 0), draft("b", 0, { expected: { subject: "c", sequence: 0 } })];
    expect(await log.appendBatch(guarded)).toEqual({ stored: true, sequence: 2 });
  });
});

describe("a question", () => {
  test("about the end of a subject finds its last message, or nothing", async () => {
    const log = await logOf("a", "b", "a");
    expect((await log.lastOn("a"))?.sequence).toBe(3);
    expect(await log.lastOn("c")).toBeUndefined();
  });

  test("about a sequence that is not there is answered so", async () => {
    const log = await logOf("a");
    for (const sequence of [0, 2]) {
      const message = `HP_memory has no message ${sequence}`;
      await expect(log.get(sequence)).rejects.toMatchObject({ code: "not_found", message, details: { sequence } });
    }
  });

  test("about the end of an empty stream is answered with 0", async () => {
    expect(await new MemoryLog().lastSequence()).toBe(0);
  });
});

describe("a read", () => {
  test("delivers all from its first to exactly its last sequence", async () => {
    const log = await logOf("a", "b", "a", "b");
    expect(await sequencesOf(log, { upTo: 3 })).toEqual([1, 2, 3]);
    expect(await sequencesOf(log, { from: 2, upTo: 3 })).toEqual([2, 3]);
    expect(await sequencesOf(log, { from: 4, upTo: 4 })).toEqual([4]);
    expect(await sequencesOf(log, { from: 5, upTo: 4 })).toEqual([]);
    expect(await sequencesOf(log, { from: 9, upTo: 8 })).toEqual([]);
    expect(await sequencesOf(log, { upTo: 0 })).toEqual([]);
  });

  test("[L15] fails where the stream ends before its last sequence, and delivers nothing", async () => {
    const log = await logOf("a");
    const delivered: StoredMessage[] = [];
    const reading = log.read({ upTo: 2 }, (message) => delivered.push(message));
    await expect(reading).rejects.toMatchObject({ code: "invalid_checkpoint_state", details: { upTo: 2 } });
    await expect(sequencesOf(log, { from: 2, upTo: 2 })).rejects.toThrow("HP_memory ends before 2");
    expect(delivered).toEqual([]);
  });

  test("needs whole numbers from 1", async () => {
    const log = await logOf("a");
    for (const options of [{ from: 0, upTo: 1 }, { from: 1.5, upTo: 2 }, { upTo: Number.NaN }, { upTo: 0.5 }]) {
      await expect(sequencesOf(log, options)).rejects.toMatchObject({ code: "invalid_request" });
      await expect(sequencesOf(log, options)).rejects.toThrow(`not ${options.from ?? 1} to ${options.upTo}`);
    }
  });

  test("delivers the subjects that match, as the broker matches them", async () => {
    const log = await logOf("hp.a.log.x", "hp.a.log", "hp.a.control", "hp.b.log.x", "hp.a.log.x.y");
    const found = (...subjects: readonly string[]) => sequencesOf(log, { upTo: 5, subjects });
    expect(await found("hp.a.control")).toEqual([3]);
    expect(await found("hp.a.log.>")).toEqual([1, 5]);
    expect(await found("hp.*.log.*")).toEqual([1, 4]);
    expect(await found("*.a.*")).toEqual([2, 3]);
    expect(await found(">")).toEqual([1, 2, 3, 4, 5]);
    expect(await found("hp.a.control", "hp.b.>")).toEqual([3, 4]);
    expect(await found("hp.a", "a.log", "hp.a.log.z")).toEqual([]);
    expect(await found()).toEqual([]);
  });
});

describe("a tail", () => {
  test("delivers what is there from its first sequence on, then what comes, each once and in order", async () => {
    const log = await logOf("a", "b", "c");
    const seen: number[] = [];
    const tail = await log.tail({ from: 2 }, ({ sequence }) => seen.push(sequence));
    expect(seen).toEqual([2, 3]);
    expect(tail.last).toBe(3);
    await log.appendBatch([draft("d", 0), draft("e", 0)]);
    expect(seen).toEqual([2, 3, 4, 5]);
    expect(tail.last).toBe(5);
  });

  test("from beyond the end waits until the stream comes there", async () => {
    const log = await logOf("a");
    const seen: number[] = [];
    const tail = await log.tail({ from: 4 }, ({ sequence }) => seen.push(sequence));
    expect(tail.last).toBe(3);
    for (const subject of ["b", "c", "d"]) await log.append(draft(subject, 0));
    expect(seen).toEqual([4]);
  });

  test("delivers the subjects that match, and counts what it delivered", async () => {
    const log = await logOf("log.a", "control");
    const seen: string[] = [];
    const tail = await log.tail({ from: 1, subjects: ["log.*"] }, ({ subject }) => seen.push(subject));
    await log.append(draft("log.b", 0));
    await log.append(draft("control", 2));
    expect(seen).toEqual(["log.a", "log.b"]);
    expect(tail.last).toBe(3);
  });

  test("ends when it is stopped, and delivers nothing after that", async () => {
    const log = await logOf("a");
    const seen: number[] = [];
    const tail = await log.tail({ from: 1 }, ({ sequence }) => seen.push(sequence));
    await tail.stop();
    await tail.ended;
    await log.append(draft("b", 0));
    expect(seen).toEqual([1]);
  });

  test("that is stopped by its own delivery delivers no more", async () => {
    const log = await logOf("a");
    const seen: number[] = [];
    const tail = await log.tail({ from: 2 }, ({ sequence }) => {
      seen.push(sequence);
      void tail.stop();
    });
    await log.appendBatch([draft("b", 0), draft("c", 0)]);
    expect(seen).toEqual([2]);
  });

  test("whose delivery throws ends with that, and leaves the append and the other tails alone", async () => {
    const log = await logOf("a");
    const seen: number[] = [];
    const broken = await log.tail({ from: 2 }, () => {
      throw new Error("no use");
    });
    await log.tail({ from: 1 }, ({ sequence }) => seen.push(sequence));
    expect(await log.append(draft("b", 0))).toEqual({ stored: true, sequence: 2 });
    await expect(broken.ended).rejects.toThrow("no use");
    await log.append(draft("c", 0));
    expect(broken.last).toBe(1);
    expect(seen).toEqual([1, 2, 3]);
  });

  test("whose first delivery throws ends with that", async () => {
    const log = await logOf("a");
    const tail = await log.tail({ from: 1 }, () => {
      throw new Error("no use");
    });
    await expect(tail.ended).rejects.toThrow("no use");
  });

  test("whose delivery appends sees what it appended after that, and so does every other tail", async () => {
    const log = await logOf("a");
    const seen: (readonly [string, number])[] = [];
    const watch = async (name: string) => log.tail({ from: 1 }, ({ sequence }) => seen.push([name, sequence]));
    await watch("one");
    let depth = 0;
    await log.tail({ from: 2 }, ({ sequence, subject }) => {
      depth += 1;
      expect(depth).toBe(1);
      if (subject === "b") void log.append(draft("c", 0));
      seen.push(["echo", sequence]);
      depth -= 1;
    });
    await watch("two");
    await log.append(draft("b", 0));
    await log.append(draft("d", 0));
    const of = (name: string) => seen.filter(([who]) => who === name).map(([, sequence]) => sequence);
    expect(of("one")).toEqual([1, 2, 3, 4]);
    expect(of("echo")).toEqual([2, 3, 4]);
    expect(of("two")).toEqual([1, 2, 3, 4]);
  });
});
