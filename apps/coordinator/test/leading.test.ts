import { HoldpointError } from "@holdpoint/errors";
import {
  type AppendResult,
  decodeEvents,
  type Draft,
  encodeEvents,
  eventSchema,
  type MemoryLog,
} from "@holdpoint/eventsourcing";
import { ControlEvent, controlSubject, Outcome } from "@holdpoint/schemas";
import { expect, test } from "vitest";
import { CommandService } from "../src/command-service.ts";
import { MemoryRun, promise, run, type Running, until } from "./memory-run.ts";

const controlEvents = eventSchema(ControlEvent);

async function controlEventsOf({ log }: MemoryRun): Promise<ControlEvent[]> {
  const events: ControlEvent[] = [];
  await log.read({ upTo: await log.lastSequence(), subjects: [controlSubject(run)] }, (message) => {
    for (const { event } of decodeEvents(message, controlEvents).events) events.push(event);
  });
  return events;
}

test("a coordinator takes over with its promise, obeys, and says that it leads no more when it is told to stop", async () => {
  const led = await MemoryRun.joined();
  const { coordinator, end } = await led.lead();
  const checkpoint = await led.command("checkpoint", { checkpointId: "c1", timeoutMs: 30_000 });
  expect(await led.outcome(checkpoint)).toMatchObject({ ok: true });
  expect(coordinator.state.promise).toEqual(promise);
  expect(coordinator.state.leader).toBe("c1");
  await coordinator.stop();
  await end;
  expect((await controlEventsOf(led)).at(-1)).toEqual({ type: "coordinator.stopped", data: { incarnation: "c1" } });
  expect(coordinator.state.leader).toBeUndefined();
});

/** Another coordinator's start, written whoever leads. */
async function usurp({ log }: MemoryRun, append: MemoryLog["append"] = log.append.bind(log)): Promise<void> {
  const event = { type: "coordinator.started", data: { incarnation: "other", promise } };
  const subject = controlSubject(run);
  const expected = { subject, sequence: (await log.lastOn(subject))?.sequence ?? 0 };
  await append({ subject, messageId: "other", expected, ...encodeEvents("other", [event]) });
}

test("[L11] a leader that reads that another has taken over appends nothing more, and stands by", async () => {
  const led = await MemoryRun.joined();
  const { standings, coordinator } = await led.lead();
  led.answering.add("other");
  await usurp(led);
  const last = await led.log.lastSequence();
  await led.command("status", {});
  await until(() => standings.at(-1)?.status === "stands by");
  expect(standings.map(({ status, leader }) => [status, leader])).toEqual([
    ["leads", "c1"],
    ["superseded", "other"],
    ["stands by", "other"],
  ]);
  expect(await led.log.lastSequence()).toBe(last + 1);
  await coordinator.stop();
});

test("[L11] it stands by also where it learns of the other only by a refusal", async () => {
  const led = await MemoryRun.joined();
  const { log } = led;
  const append = log.append.bind(log);
  const { standings, coordinator } = await led.lead();
  led.answering.add("other");
  let raced = false;
  log.append = async (draft: Draft) => {
    if (!raced && draft.subject === controlSubject(run)) {
      raced = true;
      await usurp(led, append);
    }
    return append(draft);
  };
  await led.command("prepare", { checkpointId: "c1", timeoutMs: 30_000 });
  await until(() => standings.at(-1)?.status === "stands by");
  expect(standings.map(({ status }) => status)).toEqual(["leads", "superseded", "stands by"]);
  await coordinator.stop();
});

test("[L1] a coordinator that was superseded takes over again as another incarnation, when the other is gone", async () => {
  const led = await MemoryRun.joined();
  const { standings, coordinator } = await led.lead();
  await usurp(led);
  const status = await led.command("status", {});
  expect(await led.outcome(status)).toMatchObject({ ok: true });
  expect(standings.at(-1)).toEqual({ status: "leads", leader: "c1-2" });
  await coordinator.stop();
});

test("of several that start at once one leads, the others stand by and fold the same", async () => {
  const led = await MemoryRun.joined();
  const all = [led.start(), led.start(), led.start()];
  await until(() => all.every(({ standings }) => standings.length > 0));
  const told = all.map(({ standings }) => standings.map(({ status }) => status).join());
  expect(told.toSorted()).toEqual(["leads", "stands by", "stands by"]);
  const checkpoint = await led.command("checkpoint", { checkpointId: "c1", timeoutMs: 30_000 });
  expect(await led.outcome(checkpoint)).toMatchObject({ ok: true });
  const last = await led.log.lastSequence();
  await until(() => all.every(({ coordinator }) => coordinator.state.sequence === last));
  expect(all[1]?.coordinator.state).toEqual(all[0]?.coordinator.state);
  expect(all[2]?.coordinator.state).toEqual(all[0]?.coordinator.state);
  const leader = all.find(({ standings }) => standings.at(-1)?.status === "leads");
  await leader?.coordinator.stop();
  await until(() => all.filter(({ standings }) => standings.some(({ status }) => status === "leads")).length === 2);
  await Promise.all(all.map(({ coordinator }) => coordinator.stop()));
});

test("[L4] a refused guard is no reason to step down: it looks again, and captures again", async () => {
  const led = await MemoryRun.joined();
  const { coordinator } = await led.lead();
  const { log } = led;
  const appendBatch = log.appendBatch.bind(log);
  let raced = 0;
  log.appendBatch = async (drafts: readonly Draft[]) => {
    const isCut = drafts.length > 4;
    if (isCut && raced++ === 0) await led.participants[2]?.start();
    return appendBatch(drafts);
  };
  const checkpoint = await led.command("checkpoint", { checkpointId: "c1", timeoutMs: 30_000 });
  expect(await led.outcome(checkpoint)).toMatchObject({ ok: true });
  expect(raced).toBe(2);
  await coordinator.stop();
});

test("[L10] a deadline passes by the stream's time, as an event", async () => {
  const led = await MemoryRun.joined();
  const { coordinator } = await led.lead();
  for (const participant of led.participants) participant.behaviour.prepare = () => undefined;
  const prepare = await led.command("prepare", { checkpointId: "c1", timeoutMs: 30_000 });
  const before = await led.command("status", {});
  expect(await led.outcome(before)).toMatchObject({ ok: true, result: { phase: "preparing" } });
  led.nowMs += 35_000;
  await led.command("status", {});
  expect(await led.outcome(prepare)).toMatchObject({ ok: false, problem: { code: "deadline_exceeded" } });
  await coordinator.stop();
});

test("[L15] a restore reads the message at the cut anew, and notices that it is another", async () => {
  const led = await MemoryRun.joined();
  const { coordinator } = await led.lead();
  const checkpoint = await led.command("checkpoint", { checkpointId: "c1", timeoutMs: 30_000 });
  expect(await led.outcome(checkpoint)).toMatchObject({ ok: true });
  const { log } = led;
  const get = log.get.bind(log);
  log.get = async (sequence) => ({ ...(await get(sequence)), messageId: "forged" });
  const forged = await led.command("restore", { checkpointId: "x1", source: "c1", timeoutMs: 30_000 });
  expect(await led.outcome(forged)).toMatchObject({ ok: false, problem: { code: "invalid_checkpoint_state" } });
  log.get = async () => Promise.reject(new HoldpointError("not_found", "gone"));
  const gone = await led.command("restore", { checkpointId: "x1", source: "c1", timeoutMs: 30_000 });
  expect(await led.outcome(gone)).toMatchObject({ ok: false, problem: { code: "invalid_checkpoint_state" } });
  log.get = get;
  const restore = await led.command("restore", { checkpointId: "x1", source: "c1", timeoutMs: 30_000 });
  expect(await led.outcome(restore)).toMatchObject({ ok: true });
  await coordinator.stop();
});

/** Answers each append of more than one message in place of the log. */
function onBatch(log: MemoryLog, answer: () => Promise<AppendResult>): void {
  const appendBatch = log.appendBatch.bind(log);
  log.appendBatch = async (drafts) => (drafts.length > 1 ? answer() : appendBatch(drafts));
}

test("what the log throws ends it", async () => {
  const led = await MemoryRun.joined();
  const { end } = await led.lead();
  const closed = new HoldpointError("unavailable", "the connection is closed");
  onBatch(led.log, async () => Promise.reject(closed));
  await led.command("status", {});
  await expect(end).rejects.toThrow("the connection is closed");
});

test("a refusal that nothing in the stream explains ends it, instead of being repeated for ever", async () => {
  const led = await MemoryRun.joined();
  const { end } = await led.lead();
  onBatch(led.log, async () => ({ stored: false }));
  await led.command("status", {});
  await expect(end).rejects.toThrow("an append was refused, and nothing in the stream says why");
});

test("a request is answered with the outcome of its command, whichever of the two is known first", async () => {
  const led = await MemoryRun.joined();
  const service = new CommandService({
    run,
    publish: async (draft) => led.publish(draft),
    lastOn: async (subject) => led.log.lastOn(subject),
    newMessageId: () => "id",
    isPrompt: () => true,
    storeWithinMs: 60_000,
  });
  const { coordinator, end } = await led.lead({}, service);
  const encoder = new TextEncoder();
  const answers = await Promise.all([
    service.obey("status", encoder.encode("{}")),
    service.obey("prepare", encoder.encode("{}")),
    service.obey("checkpoint", encoder.encode('{"checkpointId":"c1","timeoutMs":30000}')),
  ]);
  const outcomes = answers.map((answer) => Outcome.parse(JSON.parse(answer)));
  expect(outcomes.map(({ operation, ok }) => [operation, ok])).toEqual([
    ["status", true],
    ["prepare", false],
    ["checkpoint", true],
  ]);
  expect(new Set(outcomes.map(({ command }) => command)).size).toBe(3);
  await coordinator.stop();
  await end;
});

test("[L1] a leader that is told to stop as it is superseded writes nothing on the other's subject", async () => {
  const led = await MemoryRun.joined();
  let stopped: Promise<void> | undefined;
  const running: Running = await led.lead({
    seen: ({ messageId }) => {
      if (messageId === "other") stopped = running.coordinator.stop();
    },
  });
  led.answering.add("other");
  await usurp(led);
  await stopped;
  await running.end;
  expect((await controlEventsOf(led)).at(-1)).toMatchObject({
    type: "coordinator.started",
    data: { incarnation: "other" },
  });
});
