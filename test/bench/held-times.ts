/** When what a checkpoint held went on, and when it was restorable, by the stream's own timestamps. */
import { decodeEvents } from "@holdpoint/eventsourcing";
import { filters, type Outcome } from "@holdpoint/schemas";
import type { Room } from "./room.ts";
import { standingEvents } from "./standing.ts";

/** From the command's place in the log. */
export interface HeldTimes {
  /** Until every session went on. */
  readonly holdMs: number;
  readonly restorableMs: number;
}

/** @throws where the checkpoint failed */
export async function timesOf(room: Room, outcome: Outcome): Promise<HeldTimes> {
  if (!outcome.ok) throw new Error(`a checkpoint failed: ${JSON.stringify(outcome.problem)}`);
  const asked = await room.log.get(outcome.command);
  const { restorableAtMs = Number.NaN } = outcome.result;
  const holdMs = (await lastUnparked(room, outcome.command)) - asked.timeMs;
  return { holdMs, restorableMs: restorableAtMs - asked.timeMs };
}

/** When the last of the agents' sessions after `from` was let go on. */
export async function lastUnparked({ run, log }: Room, from: number): Promise<number> {
  let lastMs = Number.NaN;
  await log.read({ from, upTo: await log.lastSequence(), subjects: [filters.logsOf(run, "agent")] }, (message) => {
    const { events } = decodeEvents(message, standingEvents);
    if (events.some(({ event }) => event.type === "session.unparked")) lastMs = message.timeMs;
  });
  return lastMs;
}
