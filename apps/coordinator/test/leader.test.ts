import { HoldpointError } from "@holdpoint/errors";
import {
  type AppendResult,
  decodeEvents,
  type Draft,
  encodeEvents,
  eventSchema,
  MemoryLog,
  parseJson,
} from "@holdpoint/eventsourcing";
import { sha256 } from "@holdpoint/participant";
import { ControlEvent, controlSubject, Outcome, outcomeSubject } from "@holdpoint/schemas";
import { SimulatedProcess } from "@holdpoint/testing";
import { expect, test } from "vitest";
import { CommandService } from "../src/command-service.ts";
import { Leader, type LeaderEnd } from "../src/leader.ts";

const run = "demo";
const promise = { serverVersion: "2.15.1", syncAlways: true, replicas: 1, persistMode: "default" };
const controlEvents = eventSchema(ControlEvent);
const roles = ["environment", "model", "agent", "resources"] as const;

/** A log in memory, with participants that obey as soon as they are asked. */
class Run {
  nowMs = 1_000_000;
  readonly log = new MemoryLog(`HP_${run}`, () => this.nowMs);
  readonly participants: SimulatedProcess[] = [];
  readonly ends: LeaderEnd[] = [];
  #commands = 0;
  #leaders = 0;

  async join(): Promise<void> {
    for (const role of roles) {
      const options = { role, instance: role, worker: "0", mode: "exported" as const };
      const participant = new SimulatedProcess(run, this.log, options);
      await participant.start();
      this.participants.push(participant);
      let queue = Promise.resolve();
      const obeyAll = async () => {
        while (await participant.obey());
      };
      await this.log.tail({ from: participant.startedAt + 1, subjects: [controlSubject(run)] }, (message) => {
        participant.see(decodeEvents(message, controlEvents).events);
        queue = queue.then(obeyAll, obeyAll);
      });
    }
  }

  leader(seen?: CommandService): Leader {
    this.#leaders += 1;
    const { log } = this;
    return new Leader({
      run,
      log,
      incarnation: `c${this.#leaders}`,
      promise,
      leaseGraceMs: 600_000,
      clock: () => this.nowMs,
      hash: sha256,
      ...(seen !== undefined && { seen: (message) => seen.seen(message) }),
    });
  }

  async command(operation: string, body: object): Promise<number> {
    return this.publish({ subject: `hp.${run}.cmd.${operation}`, body: JSON.stringify(body), messageId: "" });
  }

  async publish({ subject, body }: { subject: string; body: string; messageId: string }): Promise<number> {
    this.#commands += 1;
    const expected = { subject: outcomeSubject(run, 0), sequence: 0 };
    const done = await this.log.append({ subject, body, messageId: `cmd-${this.#commands}`, expected });
    return done.stored ? done.sequence : 0;
  }

  async outcome(command: number): Promise<Outcome> {
    for (;;) {
      const message = await this.log.lastOn(outcomeSubject(run, command));
      if (message !== undefined) {
        const json = parseJson(message.body);
        return Outcome.parse(json.ok ? json.value : undefined);
      }
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

async function ledRun(): Promise<{ run: Run; leader: Leader; end: Promise<LeaderEnd> }> {
  const led = new Run();
  await led.join();
  const leader = led.leader();
  await leader.start();
  return { run: led, leader, end: leader.run() };
}

test("a leader takes over with its promise, obeys, and stops when it is told to", async () => {
  const { run: led, leader, end } = await ledRun();
  const checkpoint = await led.command("checkpoint", { checkpointId: "c1", timeoutMs: 30_000 });
  expect(await led.outcome(checkpoint)).toMatchObject({ ok: true });
  expect(leader.state.promise).toEqual(promise);
  expect(leader.state.leader).toBe("c1");
  await leader.stop();
  expect(await end).toBe("stopped");
});

test("[L11] a leader whose append on control is refused steps down, and appends nothing more", async () => {
  const { run: led, end } = await ledRun();
  const successor = led.leader();
  await successor.start();
  const status = await led.command("status", {});
  expect(await end).toBe("superseded");
  const next = successor.run();
  expect(await led.outcome(status)).toMatchObject({ ok: true });
  await successor.stop();
  expect(await next).toBe("stopped");
});

test("[L11] it steps down also where it learns of its successor only by the refusal", async () => {
  const led = new Run();
  await led.join();
  const leader = led.leader();
  await leader.start();
  const { log } = led;
  const tailed = log.append.bind(log);
  let raced = false;
  log.append = async (draft: Draft) => {
    if (!raced && draft.subject === controlSubject(run)) {
      raced = true;
      const event = { type: "coordinator.started", data: { incarnation: "other", promise } };
      const last = await log.lastOn(controlSubject(run));
      const expected = { subject: controlSubject(run), sequence: last?.sequence ?? 0 };
      await tailed({ subject: controlSubject(run), messageId: "other", expected, ...encodeEvents("other", [event]) });
    }
    return tailed(draft);
  };
  expect(await leader.run()).toBe("superseded");
});

test("two that start at once both get their turn, and the later one leads", async () => {
  const led = new Run();
  const { log } = led;
  const append = log.append.bind(log);
  const [first, second] = [led.leader(), led.leader()];
  let raced = false;
  log.append = async (draft: Draft) => {
    if (!raced) {
      raced = true;
      await second.start();
    }
    return append(draft);
  };
  await first.start();
  expect(first.state.leader).toBe("c1");
  expect(await second.run()).toBe("superseded");
});

test("[L4] a refused guard is no reason to step down: it looks again, and captures again", async () => {
  const { run: led, leader } = await ledRun();
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
  await leader.stop();
});

test("[L10] a deadline passes by the stream's time, as an event", async () => {
  const { run: led, leader } = await ledRun();
  for (const participant of led.participants) participant.behaviour.prepare = () => undefined;
  const prepare = await led.command("prepare", { checkpointId: "c1", timeoutMs: 30_000 });
  const before = await led.command("status", {});
  expect(await led.outcome(before)).toMatchObject({ ok: true, result: { phase: "preparing" } });
  led.nowMs += 35_000;
  await led.command("status", {});
  expect(await led.outcome(prepare)).toMatchObject({ ok: false, problem: { code: "deadline_exceeded" } });
  await leader.stop();
});

test("[L15] a restore reads the message at the cut anew, and notices that it is another", async () => {
  const { run: led, leader } = await ledRun();
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
  await leader.stop();
});

/** Answers each append of more than one message in place of the log. */
function onBatch(log: MemoryLog, answer: () => Promise<AppendResult>): void {
  const appendBatch = log.appendBatch.bind(log);
  log.appendBatch = async (drafts) => (drafts.length > 1 ? answer() : appendBatch(drafts));
}

test("what the log throws ends it", async () => {
  const { run: led, end } = await ledRun();
  const closed = new HoldpointError("unavailable", "the connection is closed");
  onBatch(led.log, async () => Promise.reject(closed));
  await led.command("status", {});
  await expect(end).rejects.toThrow("the connection is closed");
});

test("a refusal that nothing in the stream explains ends it, instead of being repeated for ever", async () => {
  const { run: led, end } = await ledRun();
  onBatch(led.log, async () => ({ stored: false }));
  await led.command("status", {});
  await expect(end).rejects.toThrow("an append was refused, and nothing in the stream says why");
});

test("a request is answered with the outcome of its command, whichever of the two is known first", async () => {
  const led = new Run();
  await led.join();
  const service = new CommandService({
    run,
    publish: async (draft) => led.publish(draft),
    lastOn: async (subject) => led.log.lastOn(subject),
    newMessageId: () => "id",
  });
  const leader = led.leader(service);
  await leader.start();
  const end = leader.run();
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
  await leader.stop();
  await end;
});
