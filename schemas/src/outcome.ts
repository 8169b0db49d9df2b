/** What became of a command: stored once at `outcome.<sequence>`, and answered by the service. */
import * as z from "zod";
import { Asked, Holding, ReceiptEntry, StreamPromise } from "./control-events.ts";
import { CheckpointId, Cut, Episode, ParticipantId, Role, Token } from "./ids.ts";
import { Blocker, Mode, Problem } from "./participant-events.ts";

export const Phase = z.enum(["idle", "preparing", "prepared", "captured", "committed", "restored"]);
export type Phase = z.infer<typeof Phase>;

/** What status and discover tell of one participant. */
export const ParticipantStatus = z.object({
  ...ParticipantId.shape,
  workers: z.array(z.object({ worker: Token, incarnation: Token })),
  mode: Mode,
  endpoint: z.string().nullable(),
});
export type ParticipantStatus = z.infer<typeof ParticipantStatus>;

/** One process' part in a failure. */
export const Failure = z.object({ role: Role, instance: Token, worker: Token, problem: Problem });
export type Failure = z.infer<typeof Failure>;

/** Who has been asked by a command that is being obeyed, and has not answered. `sinceMs`: epoch milliseconds, of the stream. */
export const Awaited = z.object({
  role: Role,
  instance: Token,
  worker: Token,
  command: z.int().positive(),
  operation: Asked,
  sinceMs: z.number(),
});
export type Awaited = z.infer<typeof Awaited>;

/** At most this many marks and awaited processes are named in a result; the full count of marks is always given. */
export const maxNamed = 1000;

export const Result = z.object({
  phase: Phase,
  checkpointId: CheckpointId.nullable(),
  participants: z.array(ParticipantStatus).optional(),
  /** What keeps a checkpoint from being taken at all, such as a missing policy model. */
  warnings: z.array(z.string()).optional(),
  /** When what is open ends by itself: epoch milliseconds, of the stream. */
  leaseUntilMs: z.number().optional(),
  ready: z.boolean().optional(),
  blockers: z.array(z.object({ ...ParticipantId.shape, ...Blocker.shape })).optional(),
  blockerCount: z.int().nonnegative().optional(),
  restarts: z.array(Episode).optional(),
  continued: z.array(Episode).optional(),
  cut: Cut.optional(),
  holdings: z.array(Holding).optional(),
  /** Epoch milliseconds, of the stream. */
  preparedAtMs: z.number().optional(),
  capturedAtMs: z.number().optional(),
  restorableAtMs: z.number().optional(),
  receipt: z.array(ReceiptEntry).optional(),
  failures: z.array(Failure).optional(),
  /** status: committed checkpoints that can still be restored, oldest first. */
  restorable: z.array(CheckpointId).optional(),
  marks: z.array(Episode).optional(),
  markCount: z.int().nonnegative().optional(),
  awaited: z.array(Awaited).optional(),
  /** status: what the server promised about the stream. */
  promise: StreamPromise.optional(),
});
export type Result = z.infer<typeof Result>;

export const Outcome = z.discriminatedUnion("ok", [
  z.object({ ok: z.literal(true), command: z.int().positive(), operation: z.string(), result: Result }),
  z.object({
    ok: z.literal(false),
    command: z.int().positive(),
    operation: z.string(),
    problem: Problem,
    /** What was learnt before it failed: blockers, failures by name, a receipt. */
    result: Result.optional(),
  }),
]);
export type Outcome = z.infer<typeof Outcome>;
