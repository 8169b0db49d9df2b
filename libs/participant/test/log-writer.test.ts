import { HoldpointError } from "@holdpoint/errors";
import { decodeEvents, MemoryLog, type Recorded } from "@holdpoint/eventsourcing";
import { LogWriter } from "@holdpoint/participant";
import { logSubject, resultSubject } from "@holdpoint/schemas";
import { expect, test } from "vitest";
import { GatedLog } from "./gated-log.ts";
import { agentEvents, type AgentLogEvent, episodeOf, received, turns, writer } from "./room.ts";

const run = "room";
const subject = logSubject(run, writer);

class Desk {
  readonly memory: MemoryLog;
  readonly log: GatedLog;
  readonly applied: Recorded<AgentLogEvent>[] = [];
  readonly failures: unknown[] = [];
  fenced = 0;

  constructor(memory = new MemoryLog("HP_room")) {
    this.memory = memory;
    this.log = new GatedLog(memory);
  }

  async claim(incarnation = "life-1"): Promise<LogWriter<AgentLogEvent>> {
    const claimed = await LogWriter.claim<AgentLogEvent>(
      {
        log: this.log,
        run,
        writer,
        incarnation,
        now: () => 0,
        applied: (events) => this.applied.push(...events),
        fenced: () => {
          this.fenced += 1;
        },
        failed: (error) => this.failures.push(error),
      },
      (last) => ({
        type: "participant.announced",
        data: { mode: "exported", endpoint: null, lastAtMs: last?.timeMs ?? null },
      }),
    );
    return claimed.writer;
  }

  /** The turns that rest on the log subject, message by message. */
  async rests(): Promise<readonly (readonly number[])[]> {
    const found: number[][] = [];
    await this.memory.read({ upTo: await this.memory.lastSequence(), subjects: [subject] }, (message) => {
      const { events } = decodeEvents(message, agentEvents);
      found.push(events.flatMap(({ event }) => (event.type === "call.received" ? [event.data.turn] : [])));
    });
    return found.slice(1);
  }
}

function turn(at: number): AgentLogEvent {
  return received(episodeOf("r1"), at);
}

test("[L1] what comes while an append is in flight is gathered into one message, in the order in which it was asked", async () => {
  const desk = new Desk();
  const desked = await desk.claim();
  desk.log.isShut = true;
  const first = desked.record([turn(0)]);
  await turns(2);
  const rest = [1, 2, 3, 4].map((at) => desked.record([turn(at)]));
  await turns(2);
  desk.log.open();
  const sequences = await Promise.all([first, ...rest]);
  expect(await desk.rests()).toEqual([[0], [1, 2, 3, 4]]);
  expect(sequences).toEqual([2, 3, 3, 3, 3]);
  expect(desk.log.mostUnderWay).toBe(1);
  expect(desk.applied.map(({ sequence, index }) => [sequence, index])).toEqual([
    [2, 0],
    [3, 0],
    [3, 1],
    [3, 2],
    [3, 3],
  ]);
});

test("[L1] what is asked in one turn goes out in one message", async () => {
  const desk = new Desk();
  const desked = await desk.claim();
  await Promise.all([0, 1, 2].map((at) => desked.record([turn(at)])));
  expect(await desk.rests()).toEqual([[0, 1, 2]]);
});

test("[L1] a result goes to its own subject, in its place, and expects the end of the log subject", async () => {
  const desk = new Desk();
  const desked = await desk.claim();
  await Promise.all([desked.record([turn(0)]), desked.end(turn(1)), desked.record([turn(2)])]);
  expect(desk.log.drafts.slice(1).map((draft) => [draft.subject, draft.expected])).toEqual([
    [subject, { subject, sequence: 1 }],
    [resultSubject(run, writer), { subject, sequence: 2 }],
    [subject, { subject, sequence: 2 }],
  ]);
  expect(await desk.rests()).toEqual([[0], [2]]);
});

test("[L1] where a successor has claimed, everything in flight, waiting and later fails, and the writer says so once", async () => {
  const desk = new Desk();
  const desked = await desk.claim();
  desk.log.isShut = true;
  const inFlight = desked.record([turn(0)]);
  await turns(2);
  const waiting = [desked.record([turn(1)]), desked.end(turn(2))];
  const successor = await new Desk(desk.memory).claim("life-2");
  desk.log.open();
  const ends = await Promise.allSettled([inFlight, ...waiting, desked.record([turn(3)])]);
  for (const end of ends) expect(end).toMatchObject({ status: "rejected", reason: { code: "stale_attempt" } });
  await expect(desked.record([turn(4)])).rejects.toMatchObject({ code: "stale_attempt" });
  expect(desk.fenced).toBe(1);
  await successor.record([turn(5)]);
  expect(await desk.rests()).toEqual([[], [5]]);
});

test("[L1] of two that claim at the same time one fences the other, whoever comes last", async () => {
  const desk = new Desk();
  const other = new Desk(desk.memory);
  const writers = await Promise.all([desk.claim("life-1"), other.claim("life-2")]);
  const ends = await Promise.allSettled(writers.map((desked, at) => desked.record([turn(at)])));
  expect(ends.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
  expect(desk.fenced + other.fenced).toBe(1);
});

test("[L4] a freeze returns once all that was asked before is appended; then only what is urgent goes, until the thaw", async () => {
  const desk = new Desk();
  const desked = await desk.claim();
  desk.log.isShut = true;
  void desked.record([turn(0)]);
  await turns(2);
  void desked.record([turn(1)]);
  let frozen = false;
  const freezing = desked.freeze().then(() => (frozen = true));
  const late = desked.record([turn(2)]);
  await turns(2);
  expect(frozen).toBe(false);
  desk.log.open();
  await freezing;
  expect(await desk.rests()).toEqual([[0], [1]]);
  await desked.record([turn(3)], { urgent: true });
  await desked.freeze();
  expect(await desk.rests()).toEqual([[0], [1], [3]]);
  desked.thaw();
  await late;
  expect(await desk.rests()).toEqual([[0], [1], [3], [2]]);
});

test("[L4] a freeze comes to its end under a stream of further events", async () => {
  const desk = new Desk();
  const desked = await desk.claim();
  let asked = 0;
  const feed = async () => {
    while (asked < 30) {
      void desked.record([turn(asked++)]);
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  const feeding = feed();
  await turns(3);
  await desked.freeze();
  const { length } = await desk.rests();
  await feeding;
  expect((await desk.rests()).length).toBe(length);
  expect(length).toBeLessThan(asked);
  desked.thaw();
  await desked.record([turn(asked)]);
  expect((await desk.rests()).flat()).toEqual(Array.from({ length: asked + 1 }, (_, at) => at));
});

test("[L2] nothing is applied or answered before its append is acknowledged", async () => {
  const desk = new Desk();
  const desked = await desk.claim();
  desk.log.isShut = true;
  let answered = false;
  const recording = desked.record([turn(0)]).then(() => (answered = true));
  await turns();
  expect([answered, desk.applied.length]).toEqual([false, 0]);
  desk.log.open();
  await recording;
  expect(desk.applied.length).toBe(1);
});

test("an event that no message can hold is refused, and nothing else suffers from it", async () => {
  const desk = new Desk();
  const desked = await desk.claim();
  const large = { ...turn(0), data: { ...episodeOf("r1"), turn: 0, response: { digest: "", bytes: 0, text: "" } } };
  const tooLarge = { ...large, data: { ...large.data, response: { digest: "", bytes: 0, text: "é".repeat(500_001) } } };
  await expect(desked.record([{ type: "call.received", data: tooLarge.data }])).rejects.toMatchObject({
    code: "invalid_request",
    message: expect.stringContaining("Contents.write"),
  });
  await desked.record([turn(1)]);
  expect(await desk.rests()).toEqual([[1]]);
});

test("what is waiting is divided into messages that the broker takes", async () => {
  const desk = new Desk();
  const desked = await desk.claim();
  const text = "x".repeat(100_000);
  const large = (at: number): AgentLogEvent => ({
    type: "call.received",
    data: { ...episodeOf("r1"), turn: at, response: { digest: "0".repeat(64), bytes: 100_000, text } },
  });
  await Promise.all([0, 1, 2, 3, 4].map((at) => desked.record([large(at)])));
  expect(await desk.rests()).toEqual([[0, 1], [2, 3], [4]]);
});

test.each([false, true])(
  "[L1] after an append that failed nothing more is appended, so that nothing is out of order or doubled (stored: %s)",
  async (stored) => {
    const desk = new Desk();
    const desked = await desk.claim();
    desk.log.isShut = true;
    desk.log.failure = { error: new HoldpointError("unavailable", "the connection is closed"), stored };
    const first = desked.record([turn(0)]);
    await turns(2);
    const second = desked.record([turn(1)]);
    desk.log.open();
    const ends = await Promise.allSettled([first, second]);
    for (const end of ends) {
      expect(end).toMatchObject({
        status: "rejected",
        reason: { code: "unavailable", message: expect.stringContaining("start the process again") },
      });
    }
    await expect(desked.record([turn(2)])).rejects.toMatchObject({ code: "unavailable" });
    await desked.freeze();
    expect(desk.failures).toMatchObject([{ message: "the connection is closed" }]);
    expect(await desk.rests()).toEqual(stored ? [[0]] : []);
    const successor = await new Desk(desk.memory).claim("life-2");
    await successor.record([turn(3)]);
    expect((await desk.rests()).flat()).toEqual(stored ? [0, 3] : [3]);
  },
);
