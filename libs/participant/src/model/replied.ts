/**
 * Policies and what they say, read as it is written down: what the log could not be read with again is no reply. Whoever wrote the
 * policy is told by this process' log, and its callers of an internal error.
 */
import * as z from "zod";
import type { ChatRequest } from "./chat-request.ts";
import { assistantMessage } from "./chat-message.ts";
import type { Policies, Policy, PolicyReply, ReplyOptions } from "./define-model.ts";
import { tokensIn } from "./tokens.ts";

export interface Replied {
  /** The assistant message as JSON. */
  readonly text: string;
  /** What a trainer needs of it, as JSON; null: nothing. */
  readonly staged: string | null;
  readonly promptTokens: number;
  readonly completionTokens: number;
}

const count = z.int().nonnegative();
const Usable = z.looseObject({ version: count, reply: z.custom((value) => typeof value === "function") });
const Rest = z.looseObject({ tokens: z.object({ prompt: count, completion: count }).optional() });

/** The policy called `name`. @throws TypeError where what is found there is none */
export async function policyOf(policies: Policies, name: string, signal: AbortSignal): Promise<Policy> {
  const policy = await policies.find(name, signal);
  if (Usable.safeParse(policy).success) return policy;
  throw new TypeError(`policy ${name} was found without a version, a whole number from 0, or without a reply`);
}

/** @throws TypeError where the policy says no assistant message, or counts no tokens */
export async function replied(
  policy: Policy,
  request: ChatRequest,
  options: Omit<ReplyOptions, "request">,
): Promise<Replied> {
  const reply: Partial<PolicyReply> = await policy.reply(request.messages, { ...options, request });
  const message = assistantMessage(reply.message);
  if (message === undefined) {
    throw new TypeError(`policy ${request.model} replied without a message { role: "assistant", content, … }`);
  }
  const { data: { tokens } = {}, success } = Rest.safeParse(reply);
  if (!success) throw new TypeError(`policy ${request.model} counts tokens that are no whole numbers`);
  const { staging = null } = reply;
  return {
    text: JSON.stringify(message),
    staged: staging === null ? null : JSON.stringify(staging),
    promptTokens: tokens?.prompt ?? tokensIn(request.messages),
    completionTokens: tokens?.completion ?? tokensIn([message]),
  };
}
