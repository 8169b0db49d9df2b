/** What the coordinator decided: the events on `control`, written by the leader alone. Append-only names and fields. */
import * as z from "zod";
import { CheckpointId, Cut, Digest, Episode, ParticipantId, RemainingMs, Role, Token } from "./ids.ts";
import { Mode, Problem } from "./participant-events.ts";
import { event } from "./event.ts";

/** The sequence of the command that this decision obeys or ends. */
const command = z.int().positive();
const checkpointId = CheckpointId;

/** What the server promised about the stream when the coordinator asked. */
export const StreamPromise = z.object({
  serverVersion: z.string(),
  syncAlways: z.boolean().nullable(),
  replicas: z.int().positive(),
  persistMode: z.string(),
});
export type StreamPromise = z.infer<typeof StreamPromise>;

/** The operations that participants are asked for. */
export const Asked = z.enum([
  "prepare",
  "capture",
  "proceed",
  "commit",
  "resume",
  "restore",
  "retire",
  "forget",
  "release",
]);
export type Asked = z.infer<typeof Asked>;

/** One rollout of a restore: the attempt whose history it continues, and the attempt that continues it. */
export const Assignment = z.object({ rollout: Token, from: z.int().nonnegative(), to: z.int().positive() });
export type Assignment = z.infer<typeof Assignment>;

/** In a restore, `worker` takes over what `of` held, a worker of the same instance that is not there any more. */
export const Adoption = z.object({ ...ParticipantId.shape, worker: Token, of: Token });
export type Adoption = z.infer<typeof Adoption>;

/** What one process of a participant held at the cut, as the checkpoint names it. */
export const Holding = z.object({
  ...ParticipantId.shape,
  worker: Token,
  digest: Digest,
  sessions: z.int().nonnegative(),
  /** The position of its `captured` answer in the stream. */
  capturedSequence: z.int().positive(),
});
export type Holding = z.infer<typeof Holding>;

/** What one process of a participant had to restore, and what it found. */
export const ReceiptEntry = z.object({
  ...ParticipantId.shape,
  worker: Token,
  /** The worker that went on with it, where this one is not there any more. */
  adoptedBy: Token.optional(),
  expected: Digest.nullable(),
  found: Digest.nullable(),
  continued: z.array(Episode),
  /** How many it continued, where they are too many to be named. */
  continuedCount: z.int().nonnegative().optional(),
  restarted: z.array(Episode),
  leftOut: z.array(z.object({ ...Episode.shape, why: z.string() })),
});
export type ReceiptEntry = z.infer<typeof ReceiptEntry>;

export const ControlEvent = z.discriminatedUnion("type", [
  event("coordinator.started", { incarnation: Token, promise: StreamPromise }),
  /** It leads no more, of its own accord: whoever stands by takes over at once. */
  event("coordinator.stopped", { incarnation: Token }),
  /** The deadline of a command passed with answers outstanding; with `asked`, only the share of it that this ask had. */
  event("deadline.passed", { command, asked: z.int().positive().optional() }),
  /** Will be obeyed; ends with its outcome. `joins`: the same command is being obeyed already, and its outcome serves both. */
  event("command.accepted", { command, joins: command.optional() }),
  /** A command that changes nothing and was refused, or answered at once. Moves the cursor. */
  event("command.refused", { command, problem: Problem }),
  event("command.answered", { command }),
  /** A command that was accepted, asked participants, and came to nothing: what it had not reached stays as it was. */
  event("command.failed", { command, problem: Problem }),
  /** Participants are expected from here until they leave. */
  event("participant.joined", {
    ...ParticipantId.shape,
    worker: Token,
    incarnation: Token,
    mode: Mode,
    endpoint: z.string().nullable(),
    /** Its announcement, and the last message of the incarnation before it (null: it is the first). */
    announcedSequence: z.int().positive(),
    announcedAtMs: z.number(),
    lastAtMs: z.number().nullable(),
  }),
  event("participant.left", { ...ParticipantId.shape, worker: Token }),
  /** By command: it will not come back, and is expected no more. Its log is fenced in the same batch. */
  event("participant.removed", { command, ...ParticipantId.shape, worker: Token }),

  /** Obeyed by the participants of `roles`: each answers once, naming this event's sequence. */
  event("participants.asked", {
    command,
    operation: Asked,
    roles: z.array(Role),
    checkpointId: CheckpointId.nullable(),
    remainingMs: RemainingMs,
    /** capture: the episodes to fix. */
    scope: z.array(Episode).optional(),
    /** restore: the checkpoint and the attempts. */
    source: CheckpointId.optional(),
    cut: Cut.optional(),
    assignments: z.array(Assignment).optional(),
    adoptions: z.array(Adoption).optional(),
    /** retire: the marks; forget: `attempt` is ignored. */
    rollouts: z.array(Episode).optional(),
    /** release: what stays restorable, and what does not any more: a checkpoint that stands later is neither. */
    kept: z.array(CheckpointId).optional(),
    dropped: z.array(CheckpointId).optional(),
    /** commit: external compute may be stopped once durable. */
    stop: z.boolean().optional(),
  }),

  event("checkpoint.opened", {
    command,
    checkpointId,
    kind: z.enum(["checkpoint", "restore"]),
    deadlineAtMs: z.number(),
  }),
  /** What is open ends by itself so many milliseconds after this event, unless it is moved again. */
  event("lease.moved", { command, checkpointId, leaseMs: z.int().nonnegative() }),
  /** Not ready by the deadline: admission stays closed, the phase stays `preparing`. */
  event("checkpoint.stalled", { command, checkpointId }),
  event("checkpoint.prepared", { command, checkpointId, restarts: z.array(Episode), continued: z.array(Episode) }),
  /** One of a batch: expects `subject` to end at `sequence`, so that the cut stands only if nothing followed. */
  event("cut.guarded", { checkpointId, subject: z.string(), sequence: z.int().positive() }),
  /** The cut: every event up to this one's own sequence belongs to it. */
  event("checkpoint.captured", {
    command,
    checkpointId,
    stream: z.string(),
    scope: z.array(Episode),
    holdings: z.array(Holding),
  }),
  event("checkpoint.proceeded", { command, checkpointId }),
  event("checkpoint.committed", {
    command,
    checkpointId,
    cut: Cut,
    /** The digest of the message at the cut: a stream that was damaged or made anew is noticed by it. */
    anchor: Digest,
    scope: z.array(Episode),
    holdings: z.array(Holding),
    capturedAtMs: z.number(),
  }),
  /** The id is stale from here, for ever, also where nothing was open. */
  event("checkpoint.resumed", {
    command: command.nullable(),
    checkpointId,
    reason: z.enum(["command", "lease", "restore_failed"]),
  }),
  /** Every participant was asked to resume, and answered or ran out of time: nothing of this id is closed any more. */
  event("resume.ended", { command: command.nullable(), checkpointId }),

  event("restore.started", {
    command,
    checkpointId,
    source: CheckpointId,
    cut: Cut,
    assignments: z.array(Assignment),
    adoptions: z.array(Adoption).optional(),
  }),
  event("restore.installed", { command, checkpointId, source: CheckpointId, receipt: z.array(ReceiptEntry) }),
  event("restore.failed", { command, checkpointId, source: CheckpointId, problem: Problem }),

  /** Refused from here, for good, by everyone: each attempt named, and all before it. */
  event("rollouts.marked", { command, rollouts: z.array(Episode) }),
  event("rollouts.retired", { command, rollouts: z.array(Episode) }),
  event("rollouts.forgotten", { command, rollouts: z.array(Token) }),

  /** In the log before anything is freed. */
  event("checkpoint.releasing", { command, checkpointId, kept: z.array(CheckpointId), dropped: z.array(CheckpointId) }),
  event("checkpoint.released", { command, checkpointId }),
  /** A message on a subject of ours that nobody could make sense of. */
  event("input.refused", { sequence: z.int().positive(), subject: z.string(), problem: Problem }),
]);
export type ControlEvent = z.infer<typeof ControlEvent>;
