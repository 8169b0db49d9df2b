/**
 * What happens to an episode, by the role that says it. Every event names its episode; a call is named by (rollout, turn,
 * index), never by the attempt. Append-only names and fields.
 */
import * as z from "zod";
import { Content, Json } from "./content.ts";
import { event } from "./event.ts";
import { Digest, Episode, Token } from "./ids.ts";
import { ParticipantEvent, Problem } from "./participant-events.ts";

/** The steps of an episode; before each a bookmark is recorded. */
export const stages = ["seed", "invoke_agent", "close_agent", "verify", "return"] as const;
export const Stage = z.enum(stages);
export type Stage = z.infer<typeof Stage>;

/** `replay`: a checkpoint does not wait for the step, which runs again after a restore. `wait`: it waits. */
export const StepMode = z.enum(["replay", "wait"]);
export type StepMode = z.infer<typeof StepMode>;

/** How an episode ended. A failure of infrastructure is never a reward. */
export const EpisodeStatus = z.enum(["finished", "timed_out", "failed", "cancelled"]);

const turn = z.int().nonnegative();
const index = z.int().nonnegative();

/** What servers said when they were seeded: how verify may be treated, what has to be done again after a restore. */
export const SeedTerms = z.object({
  verify: StepMode,
  rebinds: z.boolean(),
  sandboxLent: z.boolean(),
  grantsBound: z.boolean(),
});
export type SeedTerms = z.infer<typeof SeedTerms>;

export const EnvironmentEvent = z.discriminatedUnion("type", [
  event("episode.opened", {
    ...Episode.shape,
    /** Assigned before anything is seeded; used again by the replacement attempt. */
    sessionId: Token,
    task: Content,
    agent: Token,
    resources: Token,
    /** null: unbounded. */
    budgetMs: z.int().positive().nullable(),
    policyVersion: z.int().nonnegative(),
  }),
  event("episode.bookmarked", {
    ...Episode.shape,
    stage: Stage,
    terms: SeedTerms.optional(),
    /** What the activation gave, from `close_agent` on. */
    output: Content.optional(),
    /** What verify gave, at `return`. */
    verdict: Content.optional(),
  }),
  /** Sampled at a cut: what of the budget is used up, over all attempts of this history. */
  event("episode.charged", { ...Episode.shape, chargedMs: z.number().nonnegative() }),
  /** On the result subject: the episode is over. */
  event("episode.ended", {
    ...Episode.shape,
    sessionId: Token,
    status: EpisodeStatus,
    /** null unless `finished`. */
    reward: z.number().nullable(),
    verdict: Content.nullable(),
    chargedMs: z.number().nonnegative(),
    policyVersion: z.int().nonnegative(),
    why: z.string().nullable(),
  }),
]);
export type EnvironmentEvent = z.infer<typeof EnvironmentEvent>;

/** `granted`: it came with access to tools, which a process that has lost it has to ask for. */
const seeded = event("session.seeded", {
  ...Episode.shape,
  sessionId: Token,
  seed: Content,
  granted: z.boolean().optional(),
});
const closed = event("session.closed", { ...Episode.shape });

export const AgentEvent = z.discriminatedUnion("type", [
  seeded,
  /** `policyVersion`: with which the model is asked, so that a process after this one can go on by itself. */
  event("activation.started", { ...Episode.shape, policyVersion: z.int().nonnegative().optional() }),
  event("call.requested", { ...Episode.shape, turn, request: Digest }),
  /** `response`: the assistant message, as JSON. */
  event("call.received", { ...Episode.shape, turn, response: Content }),
  /** `name` and `arguments`: what was called, so that a run that does something else over a replay is noticed. */
  event("tool.returned", {
    ...Episode.shape,
    turn,
    index,
    result: Content,
    name: z.string().optional(),
    arguments: Digest.optional(),
  }),
  event("activation.ended", { ...Episode.shape, output: Content }),
  /** At a capture: what the session goes on from: before the call of `turn`, after `index` tool calls of the turn before it. */
  event("boundary.exported", {
    ...Episode.shape,
    checkpointId: z.string(),
    turn,
    index: index.optional(),
    boundary: Content,
  }),
  /** A harness that runs elsewhere is known by `handle` to whoever looks for it after a crash. */
  event("harness.launched", { ...Episode.shape, handle: z.string().max(512) }),
  closed,
]);
export type AgentEvent = z.infer<typeof AgentEvent>;

/** Absent: an agent, which names its calls. `mcp`: whoever holds the grant, whose calls are numbered as they come. */
const caller = z.literal("mcp").optional();
/** The name that an MCP client gave its call, by which it can ask for the same one again; absent: it is numbered as it came. */
const key = Token.optional();

export const ResourcesEvent = z.discriminatedUnion("type", [
  /** `state`: what the server holds of a session that has just begun, for it alone to understand. */
  event("session.seeded", {
    ...Episode.shape,
    sessionId: Token,
    seed: Content,
    sandbox: Token.nullable(),
    state: Json.optional(),
  }),
  /** `sandbox` from here on: a fork after a restore or after a call that did not end. */
  event("sandbox.lent", { ...Episode.shape, sandbox: Token, from: Token.nullable() }),
  /** `snapshot`: taken before the call, so that a call that did not end can be rolled back. */
  event("tool.started", {
    ...Episode.shape,
    turn,
    index,
    name: z.string(),
    arguments: Digest,
    snapshot: Token.nullable(),
    caller,
    key,
  }),
  /**
   * `change`: what the call made of the session's state, for its server alone to understand. `isError`: the result says what was
   * wrong with the call. `problem`: the tool refused, did nothing, and there is no result; nobody counts such a call.
   */
  event("tool.finished", {
    ...Episode.shape,
    turn,
    index,
    execution: Token,
    result: Content,
    caller,
    change: Json.optional(),
    isError: z.literal(true).optional(),
    problem: Problem.optional(),
  }),
  event("verify.finished", { ...Episode.shape, execution: Token, verdict: Content }),
  /** A token that is not written anywhere opens the session's tools until then. Epoch milliseconds. */
  event("grant.issued", { ...Episode.shape, grant: Digest, expiresAtMs: z.number() }),
  /** At a capture: where the server finds again what of the session cannot live in the log. */
  event("state.exported", { ...Episode.shape, checkpointId: z.string(), reference: Json }),
  /** `for`: the checkpoint that it was taken for; null: to roll back a call. */
  event("snapshot.taken", {
    ...Episode.shape,
    snapshot: Token,
    sandbox: Token,
    checkpointId: z.string().nullable(),
    digest: Digest,
    /** The name of the sandbox provider that took it: no other can fork it. */
    provider: z.string().optional(),
  }),
  event("snapshot.durable", { snapshot: Token }),
  event("snapshot.deleted", { snapshot: Token }),
  /** No session names it: left by a process that was killed. In the log before it is freed. */
  event("sandbox.deleted", { sandbox: Token }),
  closed,
]);
export type ResourcesEvent = z.infer<typeof ResourcesEvent>;

export const ModelEvent = z.discriminatedUnion("type", [
  event("call.started", { ...Episode.shape, turn, request: Digest, policyVersion: z.int().nonnegative() }),
  /** A row of the ledger. `staging`: the digest of what the trainer needs of this call (null: nothing was staged). */
  event("call.finished", {
    ...Episode.shape,
    turn,
    request: Digest,
    response: Content,
    staging: Digest.nullable(),
    policyVersion: z.int().nonnegative(),
    promptTokens: z.int().nonnegative(),
    completionTokens: z.int().nonnegative(),
  }),
  /** The response goes out after this is acknowledged. */
  event("call.delivered", { ...Episode.shape, turn }),
  /** The caller asked again while admission was closed: it does not have the response. */
  event("call.withheld", { ...Episode.shape, turn }),
  /** Its episode has ended: nobody asks for its calls any more. */
  closed,
]);
export type ModelEvent = z.infer<typeof ModelEvent>;

export const TrainerEvent = z.discriminatedUnion("type", [
  /** The weights of `version` are the blob `digest`. */
  event("policy.published", { version: z.int().nonnegative(), digest: Digest }),
  event("group.trained", {
    group: Token,
    version: z.int().nonnegative(),
    episodes: z.array(Episode),
    cursor: z.int().nonnegative(),
  }),
  event("trainer.saved", {
    checkpointId: z.string().nullable(),
    version: z.int().nonnegative(),
    cursor: z.int().nonnegative(),
  }),
]);
export type TrainerEvent = z.infer<typeof TrainerEvent>;

/** What may stand on the log and result subjects of each role. */
export const logEvents = {
  environment: z.discriminatedUnion("type", [...ParticipantEvent.options, ...EnvironmentEvent.options]),
  agent: z.discriminatedUnion("type", [...ParticipantEvent.options, ...AgentEvent.options]),
  resources: z.discriminatedUnion("type", [...ParticipantEvent.options, ...ResourcesEvent.options]),
  model: z.discriminatedUnion("type", [...ParticipantEvent.options, ...ModelEvent.options]),
  trainer: z.discriminatedUnion("type", [...ParticipantEvent.options, ...TrainerEvent.options]),
} as const;
export type LogEventOf<Role extends keyof typeof logEvents> = z.infer<(typeof logEvents)[Role]>;
