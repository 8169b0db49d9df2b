import { decodeEvents, eventSchema } from "@holdpoint/eventsourcing";
import { ControlEvent, controlSubject } from "@holdpoint/schemas";
import { digest, type SimulatedSession } from "@holdpoint/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type CoordinatorProcess, eventually, LiveRun } from "./live-run.ts";

const sessions: readonly SimulatedSession[] = ["r1", "r2"].map((rollout) => {
  const edge = { received: 1, last: digest(rollout) };
  return { rollout, attempt: 0, edges: { calls: edge, tools: edge } };
});
const timeoutMs = 60_000;
const controlEvents = eventSchema(ControlEvent);

let live: LiveRun;
let standing: readonly CoordinatorProcess[];

beforeAll(async () => {
  live = await LiveRun.start("several");
  live.settings = { LOG_LEVEL: "debug" };
  await live.coordinator();
  for (const role of ["environment", "model", "agent", "resources"] as const) await live.join(role, sessions);
  standing = await Promise.all([live.standby(), live.standby()]);
});

afterAll(async () => {
  await live.stop();
});

/** Returns when the log holds `count` control events more than `before`, or the command's outcome. */
async function controlGrown(before: number, count: number): Promise<void> {
  await eventually(`${count} control events`, async () => {
    const events = await live.control();
    return events.length >= before + count || events.at(-1)?.type === "resume.ended" ? true : undefined;
  });
}

/** When `incarnation` began to lead, by the stream, and who has written on `control` since. */
async function termOf(incarnation: string): Promise<{ startedAtMs: number; writers: readonly string[] }> {
  const log = await live.log();
  let writers: string[] = [];
  let startedAtMs = Number.NaN;
  await log.read({ upTo: await log.lastSequence(), subjects: [controlSubject(live.run)] }, (message) => {
    for (const { event, incarnation: writer, timeMs } of decodeEvents(message, controlEvents).events) {
      if (event.type === "coordinator.started" && event.data.incarnation === incarnation) {
        writers = [];
        startedAtMs = timeMs;
      }
      writers.push(writer);
    }
  });
  return { startedAtMs, writers: [...new Set(writers)] };
}

/** How often it has asked the leader, and was answered. */
function answeredTo({ output }: CoordinatorProcess): number {
  return output.split("\n").filter((line) => line.includes(`"sign":"alive"`)).length;
}

/** How many terms there have been. */
async function terms(): Promise<number> {
  return (await live.control()).filter(({ type }) => type === "coordinator.started").length;
}

test("[L11] beside a leader that lives and answers, the others go on standing by", async () => {
  await eventually("both are answered many times, or one leads", async () => {
    const isOver = (await terms()) > 1 || standing.every((process) => answeredTo(process) >= 10);
    return isOver ? true : undefined;
  });
  expect(await terms()).toBe(1);
});

test("[L11] a leader that is killed anywhere in a checkpoint is followed by one that stood by, which ends it", async () => {
  for (let round = 0; round < 6; round++) {
    const [victim, incarnation] = [await live.leader(), await live.leading()];
    const before = (await live.control()).length;
    const command = await live.command("checkpoint", { checkpointId: `kill-${round}`, timeoutMs });
    await controlGrown(before, Math.floor(Math.random() * 14));
    const killedAtMs = Date.now();
    expect(await victim.kill()).toBe("SIGKILL");
    expect(await live.outcome(command)).toMatchObject({ ok: true, result: { phase: "idle" } });
    const status = await live.command("status", {});
    expect(await live.outcome(status)).toMatchObject({ ok: true });
    const successor = await live.leading();
    expect(successor).not.toBe(incarnation);
    const { startedAtMs, writers } = await termOf(successor);
    expect(writers).toEqual([successor]);
    process.stdout.write(`another led ${Math.round(startedAtMs - killedAtMs)} ms after the kill\n`); // for information
    await live.standby();
  }
});

test("those that stand by answer requests as the leader does", async () => {
  const answers = await Promise.all(Array.from({ length: 40 }, () => live.request("status", {})));
  expect(answers.filter(({ ok }) => ok)).toHaveLength(40);
  expect(new Set(answers.map(({ command }) => command)).size).toBe(40);
});

test("[L1] a leader that was stopped for a while finds its successor in the log, appends nothing, and stands by", async () => {
  const [stale, incarnation] = [await live.leader(), await live.leading()];
  const before = (await live.control()).length;
  const command = await live.command("checkpoint", { checkpointId: "stopped", timeoutMs });
  await controlGrown(before, 1);
  stale.child.kill("SIGSTOP");
  expect(await live.outcome(command)).toMatchObject({ ok: true });
  const status = await live.command("status", {});
  expect(await live.outcome(status)).toMatchObject({ ok: true });
  const successor = await live.leading();
  expect(successor).not.toBe(incarnation);
  stale.child.kill("SIGCONT");
  await stale.says("another coordinator has taken over; this one stands by");
  expect(await live.outcome(await live.command("status", {}))).toMatchObject({ ok: true });
  expect((await termOf(successor)).writers).toEqual([successor]);
  expect(stale.isRunning).toBe(true);
});

test("one that stood by again leads again, as another incarnation, when the others are gone", async () => {
  const led: CoordinatorProcess[] = [];
  for (let round = 0; round < 3; round++) {
    const leader = await live.leader();
    led.push(leader);
    expect(await leader.kill("SIGTERM")).toBe(0);
  }
  expect(new Set(led).size).toBe(3);
  expect(led.some(({ output }) => /"leader":"coordinator-[0-9a-f]+-[2-9]".*coordinator leads/.test(output))).toBe(true);
  await live.coordinator();
});

test("[L10] a restart of the broker is waited for by all of them, and one goes on", async () => {
  await Promise.all([live.standby(), live.standby()]);
  await live.broker.kill();
  await live.broker.restart();
  const command = await live.command("checkpoint", { checkpointId: "after", timeoutMs });
  expect(await live.outcome(command)).toMatchObject({ ok: true });
});
