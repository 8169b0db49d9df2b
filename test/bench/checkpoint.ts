/**
 * A checkpoint of sessions that stand at boundaries, by how many they are and over how many participants they are spread: from the
 * command's place in the log to prepared, captured, everybody going on (the hold), and restorable, by the stream's own timestamps.
 *
 * One environment and one model hold all sessions; so many agents, and as many resources servers, share them. All are in one
 * process, which therefore does the work of all; the coordinator and the broker are processes of their own.
 */
import { Controller } from "@holdpoint/client";
import { decodeEvents, eventSchema } from "@holdpoint/eventsourcing";
import { ControlEvent, controlSubject } from "@holdpoint/schemas";
import { median, show, table } from "./figures.ts";
import { lastUnparked } from "./held-times.ts";
import { inRoom, type Room, withCoordinator } from "./room.ts";
import { enter, episodesOf, shareOf, type Standing } from "./standing.ts";

const checkpoints = 5;
const controlEvents = eventSchema(ControlEvent);

interface Times {
  readonly preparedMs: number;
  readonly capturedMs: number;
  readonly holdMs: number;
  readonly restorableMs: number;
}

async function checkpoint(room: Room, checkpointId: string): Promise<Times> {
  const controller = new Controller(room);
  const outcome = await controller.command({ operation: "checkpoint", checkpointId, timeoutMs: 60_000 });
  if (!outcome.ok) throw new Error(`a checkpoint failed: ${JSON.stringify(outcome.problem)}`);
  const { command } = outcome;
  const [{ timeMs: askedMs }, decided] = await Promise.all([room.log.get(command), decidedAt(room, command)]);
  const since = (type: ControlEvent["type"]) => (decided.get(type) ?? Number.NaN) - askedMs;
  return {
    preparedMs: since("checkpoint.prepared"),
    capturedMs: since("checkpoint.captured"),
    holdMs: (await lastUnparked(room, command)) - askedMs,
    restorableMs: since("checkpoint.committed"),
  };
}

/** When each type of control event after `from` was last stored. */
async function decidedAt({ run, log }: Room, from: number): Promise<ReadonlyMap<string, number>> {
  const times = new Map<string, number>();
  await log.read({ from, upTo: await log.lastSequence(), subjects: [controlSubject(run)] }, (message) => {
    for (const { event, timeMs } of decodeEvents(message, controlEvents).events) times.set(event.type, timeMs);
  });
  return times;
}

async function enterAll(room: Room, sessions: number, spread: number): Promise<readonly Standing[]> {
  const all = episodesOf(sessions);
  const shares = Array.from({ length: spread }, (_, at) => shareOf(all, at, spread));
  return Promise.all([
    enter(room, "environment", all),
    enter(room, "model", all),
    ...shares.map((share, at) => enter(room, "agent", share, { instance: `a${at}` })),
    ...shares.map((share, at) => enter(room, "resources", share, { instance: `b${at}` })),
  ]);
}

/** @returns medians; a first checkpoint, of code that is not compiled yet, is left out */
async function taken(sessions: number, spread: number): Promise<Times> {
  return inRoom((room) =>
    withCoordinator(room, async () => {
      const participants = await enterAll(room, sessions, spread);
      await checkpoint(room, "first");
      const times: Times[] = [];
      for (let at = 0; at < checkpoints; at++) times.push(await checkpoint(room, `c${at}`));
      await Promise.all(participants.map((participant) => participant.stop()));
      const middle = (of: (each: Times) => number) => median(times.map(of));
      return {
        preparedMs: middle(({ preparedMs }) => preparedMs),
        capturedMs: middle(({ capturedMs }) => capturedMs),
        holdMs: middle(({ holdMs }) => holdMs),
        restorableMs: middle(({ restorableMs }) => restorableMs),
      };
    }),
  );
}

export async function measureCheckpoint(): Promise<string> {
  const rows: string[][] = [];
  for (const spread of [1, 4, 16]) {
    let before: number | undefined;
    for (const sessions of [100, 1_000, 10_000]) {
      const { preparedMs, capturedMs, holdMs, restorableMs } = await taken(sessions, spread);
      const growth = before === undefined ? "" : `× ${show(holdMs / before)}`;
      rows.push([show(sessions), String(spread), ...[preparedMs, capturedMs, holdMs, restorableMs].map(show), growth]);
      before = holdMs;
    }
  }
  const head = [
    "sessions",
    "agents",
    "prepared ms",
    "captured ms",
    "hold ms",
    "restorable ms",
    "hold for 10 × as many",
  ];
  return table(head, rows);
}
