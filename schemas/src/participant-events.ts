/** What a participant says to the control plane: announcements and answers, on its log subject. */
import { errorCodes } from "@holdpoint/errors";
import * as z from "zod";
import { CheckpointId, Digest, Episode, Token } from "./ids.ts";
import { event } from "./event.ts";

/** How a participant's sessions outlive it: exported, routed only, or not at all. */
export const Mode = z.enum(["exported", "stateless", "restart_only"]);
export type Mode = z.infer<typeof Mode>;

/** An error as it travels: a code of the closed set, and words for a person. */
export const Problem = z.object({
  code: z.enum(errorCodes),
  message: z.string(),
  details: z.record(z.string(), z.unknown()).optional(),
});
export type Problem = z.infer<typeof Problem>;

/** What a prepare waits for. `sinceMs`: epoch milliseconds, by the participant's clock. */
export const Blocker = z.object({ ...Episode.shape, reason: z.string(), sinceMs: z.number() });
export type Blocker = z.infer<typeof Blocker>;

/** At most this many blockers are named; the full count is always given. */
export const maxNamedBlockers = 100;

/** What both ends of a call say of it at the cut; the commit compares them (agent with model, agent with resources). */
export const Edges = z.object({
  /** Model calls whose response the agent has, and the digest of the latest one. */
  calls: z.object({ received: z.int().nonnegative(), last: Digest.nullable() }).optional(),
  /** Tool calls whose result the agent has, and the digest of the latest one. */
  tools: z.object({ received: z.int().nonnegative(), last: Digest.nullable() }).optional(),
});
export type Edges = z.infer<typeof Edges>;

/** An episode that a prepare answered about. */
const continued = z.array(Episode);

export const ParticipantEvent = z.discriminatedUnion("type", [
  /** The first event of an incarnation: it fences the one before. */
  event("participant.announced", { mode: Mode, endpoint: z.string().nullable(), lastAtMs: z.number().nullable() }),
  event("participant.left", {}),
  /** The lease of what is open here ran out, and nobody resumed it: this process serves again, and the id is stale. */
  event("lease.expired", { checkpointId: CheckpointId }),
  /** Written by the coordinator, never by the process: whatever the process appends next is refused (L8). */
  event("participant.fenced", { command: z.int().positive() }),
  /** The broker was away since the stream's last known time: nobody worked. */
  event("participant.reconnected", { lastAtMs: z.number() }),
  /** The answer to the `participants.asked` at sequence `asked`. */
  event("participant.answered", {
    asked: z.int().positive(),
    operation: z.string(),
    checkpointId: CheckpointId.nullable(),
    /** Absent: it was done. */
    problem: Problem.optional(),
    /** prepare */
    blockers: z.array(Blocker).optional(),
    blockerCount: z.int().nonnegative().optional(),
    restarts: z.array(Episode).optional(),
    continued: continued.optional(),
    /** capture and restore: over all sessions in scope, and how many they are. */
    digest: Digest.optional(),
    sessions: z.int().nonnegative().optional(),
    /** restore */
    installed: z.array(Episode).optional(),
    /** restore: over all sessions that each worker held which this one took over. */
    adopted: z.array(z.object({ worker: Token, digest: Digest })).optional(),
  }),
  /**
   * One session's state is fixed at this point. Precedes the answer to a capture. `asked`: the ask that it obeys, where a later
   * one begins anew (absent in older streams).
   */
  event("session.captured", {
    ...Episode.shape,
    checkpointId: CheckpointId,
    digest: Digest,
    edges: Edges,
    asked: z.int().positive().optional(),
  }),
  /** `attempt` goes on from what `from` held in the checkpoint. Counts once its restore is installed. */
  event("session.restored", {
    ...Episode.shape,
    from: z.int().nonnegative(),
    source: CheckpointId,
    /** The restore's own id. */
    checkpointId: CheckpointId,
    digest: Digest,
    /** The worker of the same instance that held it, where that was another one. */
    worker: Token.optional(),
  }),
  /** The session cannot be captured: it is never waited for, parked or exported. */
  event("session.restart_marked", { ...Episode.shape, why: z.string() }),
  event("session.retired", { ...Episode.shape }),
  event("session.parked", { ...Episode.shape, checkpointId: CheckpointId }),
  /** `checkpointId` is absent where nothing was open any more when a later incarnation found the session parked. */
  event("session.unparked", { ...Episode.shape, checkpointId: CheckpointId.optional() }),
  event("input.refused", { subject: z.string(), problem: Problem }),
]);
export type ParticipantEvent = z.infer<typeof ParticipantEvent>;

/** Events of other roles that the coordinator has to see as well as its own. */
export const controlPlaneTypes: ReadonlySet<string> = new Set([
  "participant.announced",
  "participant.left",
  "participant.fenced",
  "lease.expired",
  "participant.answered",
  "session.captured",
  "session.restored",
  "episode.opened",
  "episode.ended",
]);
