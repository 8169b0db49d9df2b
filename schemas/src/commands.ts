/** What a controller may command, and how each command looks on the wire. Unknown fields are refused. */
import * as z from "zod";
import { CheckpointId, Episode, ParticipantId, Token } from "./ids.ts";

/** The longest that an operation may take. */
export const maxTimeoutMs = 86_400_000;

/**
 * The instant (ISO 8601, UTC) or the milliseconds, counted from the stream's timestamp of the command, by which the
 * operation has to be done.
 */
const deadline = {
  deadlineAt: z.iso.datetime().optional(),
  timeoutMs: z.int().positive().max(maxTimeoutMs).optional(),
};

/** How many deadlines `command` gives. */
function deadlines(command: object): number {
  return Object.entries(command).filter(([name, value]) => name in deadline && value !== undefined).length;
}

/** A command that drives participants: it has exactly one deadline. */
function order<Name extends string, Shape extends z.ZodRawShape>(operation: Name, shape: Shape) {
  return z
    .strictObject({ operation: z.literal(operation), ...shape, ...deadline })
    .refine((command: object) => deadlines(command) === 1, {
      error: "expected exactly one of deadlineAt (an instant) and timeoutMs (milliseconds from the command's arrival)",
    });
}

/** A command that only asks: its deadline may be left out. */
function question<Name extends string>(operation: Name) {
  return z
    .strictObject({ operation: z.literal(operation), ...deadline })
    .refine((command: object) => deadlines(command) <= 1, {
      error: "expected at most one of deadlineAt and timeoutMs",
    });
}

const checkpointId = CheckpointId;
const episodes = z.array(z.strictObject(Episode.shape));

/** Absent: what prepare answered as continued. */
const scope = episodes.optional();

/** A command: the operation that its subject says, and the fields of its body. */
export const Command = z.discriminatedUnion(
  "operation",
  [
    question("discover"),
    question("status"),
    order("prepare", { checkpointId }),
    order("renew", { checkpointId }),
    order("capture", { checkpointId, scope }),
    order("proceed", { checkpointId }),
    order("commit", { checkpointId, scope, stop: z.boolean().optional() }),
    order("checkpoint", { checkpointId, scope }),
    order("resume", { checkpointId }),
    /** `checkpointId` is fresh; `source` is the committed checkpoint; `scope` the rollouts to continue (absent: all). */
    order("restore", {
      checkpointId,
      source: CheckpointId,
      scope: z.array(Token).optional(),
      allowIncomplete: z.boolean().optional(),
    }),
    /** Each entry names the highest attempt that is retired: it and all earlier ones. */
    order("retire", { rollouts: episodes.min(1) }),
    order("forget", { rollouts: z.array(Token).min(1) }),
    /** A participant, or one worker of it, that will not come back. */
    order("remove", { ...ParticipantId.shape, worker: Token.optional() }),
    order("release", { checkpointId, kept: z.array(CheckpointId) }),
  ],
  {
    error: ({ code }) =>
      code === "invalid_union" ? "the subject says the operation; leave it out of the body" : undefined,
  },
);
export type Command = z.infer<typeof Command>;
export type Operation = Command["operation"];

/** Every operation, in the order of the protocol. */
export const operations: readonly Operation[] = Command.options.map((option) => option.shape.operation.value);

/** The command that a message on `cmd.<operation>` with this body gives, or why it is none. The body says no operation. */
export function parseCommand(operation: Operation, body: unknown): z.ZodSafeParseResult<Command> {
  const isObject = typeof body === "object" && body !== null && !Array.isArray(body);
  if (!isObject) return Command.safeParse(body);
  return Command.safeParse({ ...body, operation: "operation" in body ? undefined : operation });
}
