/** What of an event's data tells which session it is about, and which capture. */
import type { Recorded } from "@holdpoint/eventsourcing";
import type { Episode } from "@holdpoint/schemas";

/** What every event of a log has that is about a session. */
export interface SessionEvent {
  readonly type: string;
  readonly data: object;
}

/** One process' obedience to one ask to capture. Older streams do not say which ask. */
export interface Capture {
  readonly asked: unknown;
  readonly incarnation: string;
}

export function captureOf({ event, incarnation }: Recorded<SessionEvent>): Capture {
  return { asked: fields(event.data).asked, incarnation };
}

export function isSame(one: Capture, other: Capture): boolean {
  const sameAsk = one.asked === undefined || other.asked === undefined || one.asked === other.asked;
  return sameAsk && one.incarnation === other.incarnation;
}

export interface SessionData extends Episode {
  readonly checkpointId?: string;
  readonly from?: number;
  readonly source?: string;
  readonly worker?: string;
}

/** The fields by which a session is found; undefined where the event is about none. */
export function sessionData(data: object): SessionData | undefined {
  const { rollout, attempt, checkpointId, from, source, worker } = fields(data);
  if (typeof rollout !== "string" || typeof attempt !== "number") return undefined;
  return {
    rollout,
    attempt,
    ...(typeof checkpointId === "string" && { checkpointId }),
    ...(typeof from === "number" && { from }),
    ...(typeof source === "string" && { source }),
    ...(typeof worker === "string" && { worker }),
  };
}

interface Fields {
  readonly rollout?: unknown;
  readonly attempt?: unknown;
  readonly checkpointId?: unknown;
  readonly from?: unknown;
  readonly source?: unknown;
  readonly worker?: unknown;
  readonly asked?: unknown;
  readonly operation?: unknown;
  readonly problem?: unknown;
}

export function fields(data: Fields): Fields {
  return data;
}
