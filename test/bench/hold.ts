/**
 * How long a checkpoint holds sessions that stand at boundaries: from the command's place in the log to the moment that every
 * session has been let go on, by the stream's own timestamps. Four participants in one process, each with all sessions; the
 * agent's park and go on one by one. The coordinator and the broker are processes of their own.
 */
import { Controller } from "@holdpoint/client";
import { roles } from "@holdpoint/schemas";
import { figuresOf, show, table } from "./figures.ts";
import { type HeldTimes, timesOf } from "./held-times.ts";
import { inRoom, type Room, withCoordinator } from "./room.ts";
import { enter, episodesOf } from "./standing.ts";

const checkpoints = 7;

/** Takes one checkpoint, and reads from the log when it began, when all went on, and when it was restorable. */
async function checkpoint(room: Room, checkpointId: string): Promise<HeldTimes> {
  const controller = new Controller(room);
  return timesOf(room, await controller.command({ operation: "checkpoint", checkpointId, timeoutMs: 30_000 }));
}

async function held(count: number): Promise<string[]> {
  const times = await inRoom((room) =>
    withCoordinator(room, async () => {
      const episodes = episodesOf(count);
      const participants = await Promise.all(roles.map((role) => enter(room, role, episodes)));
      const taken: HeldTimes[] = [];
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
