/**
 * How long a checkpoint holds sessions that stand at boundaries: from the command's place in the log to the moment that every
 * session has been let go on, by the stream's own timestamps. Four participants in one process, each with all sessions; the
 * agent's park and go on one by one. The coordinator and the broker are processes of their own.
 */
import { Controller } from "@holdpoint/client";
import { decodeEvents } from "@holdpoint/eventsourcing";
import { filters, roles } from "@holdpoint/schemas";
import { figuresOf, show, table } from "./figures.ts";
import { inRoom, type Room, withCoordinator } from "./room.ts";
import { enter, episodesOf, standingEvents } from "./standing.ts";

const checkpoints = 7;

interface Times {
  readonly holdMs: number;
  readonly restorableMs: number;
}

/** Takes one checkpoint, and reads from the log when it began, when all went on, and when it was restorable. */
async function checkpoint(room: Room, checkpointId: string): Promise<Times> {
  const controller = new Controller(room);
  const outcome = await controller.command({ operation: "checkpoint", checkpointId, timeoutMs: 30_000 });
  if (!outcome.ok) throw new Error(`a checkpoint failed: ${JSON.stringify(outcome.problem)}`);
  const asked = await room.log.get(outcome.command);
  const { restorableAtMs = Number.NaN } = outcome.result;
  return {
    holdMs: (await lastUnparked(room, outcome.command)) - asked.timeMs,
    restorableMs: restorableAtMs - asked.timeMs,
  };
}

async function lastUnparked({ run, log }: Room, from: number): Promise<number> {
  let lastMs = Number.NaN;
  const upTo = await log.lastSequence();
  await log.read({ from, upTo, subjects: [filters.logsOf(run, "agent")] }, (message) => {
    const { events } = decodeEvents(message, standingEvents);
    if (events.some(({ event }) => event.type === "session.unparked")) lastMs = message.timeMs;
  });
  return lastMs;
}

async function held(count: number): Promise<string[]> {
  const times = await inRoom((room) =>
    withCoordinator(room, async () => {
      const episodes = episodesOf(count);
      const participants = await Promise.all(roles.map((role) => enter(room, role, episodes)));
      const taken: Times[] = [];
      for (let at = 0; at < checkpoints; at++) taken.push(await checkpoint(room, `c${at}`));
      await Promise.all(participants.map((participant) => participant.stop()));
      return taken;
    }),
  );
  const hold = figuresOf(times.map(({ holdMs }) => holdMs));
  const restorable = figuresOf(times.map(({ restorableMs }) => restorableMs));
  return [String(count), ...[hold.p50, hold.min, hold.max, restorable.p50, restorable.max].map(show)];
}

export async function measureHold(): Promise<string> {
  const rows: string[][] = [];
  for (const count of [1, 100, 1_000]) rows.push(await held(count));
  return table(["sessions", "hold ms, median", "least", "most", "restorable ms, median", "most"], rows);
}
