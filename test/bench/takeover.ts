/**
 * How long a run is without a coordinator, on one machine: until one that stood by leads after a `kill -9`, and until one that is
 * started again, with 10,000 sessions and 1,000,000 events in the log, has answered a command.
 */
import { Controller } from "@holdpoint/client";
import { decodeEvents, encodeEvents, eventSchema } from "@holdpoint/eventsourcing";
import { openSnapshots } from "@holdpoint/jetstream";
import { ControlEvent, controlSubject, logSubject, outcomeSubject, type EnvironmentEvent } from "@holdpoint/schemas";
import { setTimeout as pause } from "node:timers/promises";
import { figuresOf, show, table } from "./figures.ts";
import { eventCount, fill } from "./replay.ts";
import { inRoom, type Room, RoomCoordinator } from "./room.ts";
import { episodesOf } from "./standing.ts";

const kills = 10;
const sessions = 10_000;
const controlEvents = eventSchema(ControlEvent);

/** Milliseconds from each kill to the stream's timestamp of the next start. */
async function takeovers(room: Room): Promise<readonly number[]> {
  const running = [new RoomCoordinator(room)];
  await running[0]?.says("coordinator leads");
  const times: number[] = [];
  for (let at = 0; at < kills; at++) {
    const next = new RoomCoordinator(room);
    await next.says("coordinator stands by");
    running.push(next);
    const killedMs = Date.now();
    await running.shift()?.end("SIGKILL");
    await next.says("coordinator leads");
    times.push((await lastStartMs(room)) - killedMs);
  }
  await Promise.all(running.map((coordinator) => coordinator.end("SIGKILL")));
  return times;
}

async function lastStartMs({ run, log }: Room): Promise<number> {
  let lastMs = Number.NaN;
  await log.read({ upTo: await log.lastSequence(), subjects: [controlSubject(run)] }, (message) => {
    const { events } = decodeEvents(message, controlEvents);
    if (events.some(({ event }) => event.type === "coordinator.started")) lastMs = message.timeMs;
  });
  return lastMs;
}

/** Opens the sessions' episodes, in the environment's log. */
async function openEpisodes({ run, log }: Room): Promise<void> {
  const subject = logSubject(run, { role: "environment", instance: "main", worker: "0" });
  const task = { digest: "0".repeat(64), bytes: 2, text: "{}" };
  const opened = episodesOf(sessions).map((episode): EnvironmentEvent => ({
    type: "episode.opened",
    data: { ...episode, sessionId: "s", task, agent: "main", resources: "main", budgetMs: null, policyVersion: 0 },
  }));
  let sequence = 0;
  for (let from = 0; from < opened.length; from += 500) {
    const body = encodeEvents("bench", opened.slice(from, from + 500));
    const done = await log.append({ subject, messageId: `e${from}`, expected: { subject, sequence }, ...body });
    if (!done.stored) throw new Error("the bench's own append was refused");
    ({ sequence } = done);
  }
}

/** Milliseconds from the start of a coordinator until it has answered a command that waited for it. */
async function serving(room: Room, end: NodeJS.Signals): Promise<number> {
  const startedMs = Date.now();
  const coordinator = new RoomCoordinator(room);
  const { command } = await new Controller(room).command({ operation: "status" });
  const answered = await room.log.lastOn(outcomeSubject(room.run, command));
  await snapshotSaved(room);
  await coordinator.end(end);
  return (answered?.timeMs ?? Number.NaN) - startedMs;
}

/** Returns when there is a snapshot. */
async function snapshotSaved({ connection, run }: Room): Promise<number> {
  const store = openSnapshots(connection, run);
  for (;;) {
    const bytes = await store.load("coordinator");
    if (bytes !== undefined) return bytes.length;
    await pause(100);
  }
}

async function restartRow(perMessage: number): Promise<string[]> {
  return inRoom(async (room) => {
    await openEpisodes(room);
    await fill(room, perMessage);
    const without = await serving(room, "SIGTERM");
    const afterStop = await serving(room, "SIGKILL");
    const afterKill = await serving(room, "SIGKILL");
    const megabytes = (await snapshotSaved(room)) / 2 ** 20;
    return [show(eventCount / perMessage), ...[without, afterStop, afterKill, megabytes].map(show)];
  });
}

export async function measureTakeover(): Promise<string> {
  const { p50, min, max } = figuresOf(await inRoom(takeovers));
  const killed = table(
    ["kills", "until the next leads, median ms", "least", "most"],
    [[String(kills), ...[p50, min, max].map(show)]],
  );
  const rows = [await restartRow(100), await restartRow(1)];
  const head = ["messages", "without a snapshot, ms", "with, after SIGTERM", "with, after kill -9", "snapshot MB"];
  return `${killed}\n\n${table(head, rows)}`;
}
