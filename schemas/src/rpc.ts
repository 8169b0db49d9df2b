/** Requests between participants on core NATS. They wake and ask; what they cause is in the log before they are answered. */
import * as z from "zod";
import { Content, Json } from "./content.ts";
import { Episode, Token } from "./ids.ts";
import { Problem } from "./participant-events.ts";
import { SeedTerms } from "./role-events.ts";

const addressed = {
  /** The instance that is meant: it answers also when it holds no such session. Absent: whoever holds it. */
  to: Token.optional(),
  /** The worker that is meant, where it asks its siblings; everybody else leaves it out. */
  worker: Token.optional(),
};

/** To the environment: dispatch of a rollout. Answered once `episode.opened` is in the log; the same again is harmless. */
export const RunRequest = z.strictObject({
  ...addressed,
  ...Episode.shape,
  task: Json,
  agent: Token,
  resources: Token,
  budgetMs: z.int().positive().nullable(),
  policyVersion: z.int().nonnegative(),
});
export type RunRequest = z.infer<typeof RunRequest>;

/** The episode is in the log. */
export const RunReply = z.object({});

/** How an attempt reaches the tools of its session. The token is a secret: only its digest is ever written anywhere. */
export const Access = z.object({
  token: z.string().min(1),
  /** Epoch milliseconds: ask for another one before. */
  expiresAtMs: z.number(),
  /** Where the Model Context Protocol is spoken, over streamable HTTP; absent: nowhere. */
  mcpUrl: z.string().min(1).optional(),
});
export type Access = z.infer<typeof Access>;

/** To the agent and the resources server: a session for an episode. `access`: to the agent, what the resources server grants. */
export const SeedRequest = z.strictObject({
  ...addressed,
  ...Episode.shape,
  sessionId: Token,
  seed: Json,
  access: Access.optional(),
});
export type SeedRequest = z.infer<typeof SeedRequest>;

export const SeedReply = z.object({
  terms: SeedTerms.partial(),
  /** The session cannot be captured, and why. */
  restart: z.string().nullable(),
  /** Bound to the attempt that seeded. Absent: its tools need none. */
  access: Access.optional(),
});
export type SeedReply = z.infer<typeof SeedReply>;

export const ActivateRequest = z.strictObject({ ...addressed, policyVersion: z.int().nonnegative() });

/** `running`: ask again; nothing is lost by it. */
export const ActivateReply = z.discriminatedUnion("status", [
  z.object({ status: z.literal("running") }),
  z.object({ status: z.literal("ended"), output: Content }),
]);

export const ToolRequest = z.strictObject({
  ...addressed,
  turn: z.int().nonnegative(),
  index: z.int().nonnegative(),
  name: z.string(),
  arguments: z.string(),
  /** No checkpoint can hold the caller's episode: the call is neither held nor waited for while one is open. */
  restart: z.literal(true).optional(),
});
export type ToolRequest = z.infer<typeof ToolRequest>;
export const ToolReply = z.object({ result: Content });

export const CloseRequest = z.strictObject({ ...addressed });
export const CloseReply = z.object({});

/** `output`: what the activation gave. */
export const VerifyRequest = z.strictObject({ ...addressed, output: Content.optional() });
export const VerifyReply = z.object({ verdict: Content });

/** Access anew, for an attempt that is live: before the one it has expires, or where it was lost with a process. */
export const GrantRequest = z.strictObject({ ...addressed });
export const GrantReply = z.object({ access: Access });

/** Whether a worker holds the session, or is making it: what workers of one instance ask each other, and environments each. */
export const HolderRequest = z.strictObject({ ...addressed });
export const HolderReply = z.object({ holds: z.boolean() });

/** Every rpc reply: the method's own, or a problem. */
export const RpcReply = z.discriminatedUnion("ok", [
  z.object({ ok: z.literal(true), data: z.unknown() }),
  z.object({ ok: z.literal(false), problem: Problem }),
]);
export type RpcReply = z.infer<typeof RpcReply>;

const holder = { request: HolderRequest, reply: HolderReply };

/** The methods of each role: what is asked, and what the reply's `data` is. */
export const rpcMethods = {
  environment: { holder, seed: { request: RunRequest, reply: RunReply } },
  agent: {
    holder,
    seed: { request: SeedRequest, reply: SeedReply },
    activate: { request: ActivateRequest, reply: ActivateReply },
    close: { request: CloseRequest, reply: CloseReply },
  },
  resources: {
    holder,
    seed: { request: SeedRequest, reply: SeedReply },
    tool: { request: ToolRequest, reply: ToolReply },
    close: { request: CloseRequest, reply: CloseReply },
    verify: { request: VerifyRequest, reply: VerifyReply },
    grant: { request: GrantRequest, reply: GrantReply },
  },
} as const;
