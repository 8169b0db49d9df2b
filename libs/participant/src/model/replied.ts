/**
 * Policies and what they say, read as it is written down: what the log could not be read with again is no reply.
 *
 * What a policy throws that is no HoldpointError, or one of a code that is not its to say, is a mistake of whoever wrote it, which
 * another try does not mend: its callers are told `invalid_request` and which policy it was, and this process' log what was thrown.
 */
import * as z from "zod";
import type { ChatRequest } from "./chat-request.ts";
import { assistantMessage } from "./chat-message.ts";
import { authored, type Piece } from "../author-code.ts";
import { untilAborted } from "../until-aborted.ts";
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

/** For whom a policy is asked. */
export interface Caller {
  /** Which call of which episode; a judge's are of none. */
  readonly of?: { readonly rollout: string; readonly attempt: number; readonly call: string };
  readonly signal: AbortSignal;
  readonly trouble: Piece["trouble"];
}

const count = z.int().nonnegative();
const Usable = z.looseObject({ version: count, reply: z.custom((value) => typeof value === "function") });
const Rest = z.looseObject({ tokens: z.object({ prompt: count, completion: count }).optional() });

/** The policy called `name`. @throws HoldpointError `invalid_request` where what is found there is none, or `find` is wrong */
export function policyOf(policies: Policies, name: string, caller: Caller): Promise<Policy> {
  return ofAuthor("policies.find", { ...caller, title: `finding policy ${name}` }, async (signal) => {
    const policy = await policies.find(name, signal);
    if (Usable.safeParse(policy).success) return policy;
    throw new TypeError(`policy ${name} was found without a version, a whole number from 0, or without a reply`);
  });
}

/** @throws HoldpointError `invalid_request` where the policy throws, says no assistant message, or counts no tokens */
export function replied(
  policy: Policy,
  request: ChatRequest,
  { seed, ...caller }: Caller & { readonly seed: number },
): Promise<Replied> {
  const title = `policy ${request.model}`;
  return ofAuthor("reply", { ...caller, title }, (signal) => reply(policy, request, { seed, signal }));
}

async function reply(policy: Policy, request: ChatRequest, options: Omit<ReplyOptions, "request">): Promise<Replied> {
  const said: Partial<PolicyReply> = await policy.reply(request.messages, { ...options, request });
  const message = assistantMessage(said.message);
  if (message === undefined) {
    throw new TypeError(`policy ${request.model} replied without a message { role: "assistant", content, … }`);
  }
  const { data: { tokens } = {}, success } = Rest.safeParse(said);
  if (!success) throw new TypeError(`policy ${request.model} counts tokens that are no whole numbers`);
  const { staging = null } = said;
  return {
    text: JSON.stringify(message),
    staged: staging === null ? null : JSON.stringify(staging),
    promptTokens: tokens?.prompt ?? tokensIn(request.messages),
    completionTokens: tokens?.completion ?? tokensIn([message]),
  };
}

/** Nobody waits for what goes on after the abort. */
function ofAuthor<Result>(
  hook: string,
  { of, signal, ...rest }: Caller & Pick<Piece, "title">,
  call: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const piece = { ...rest, signal, about: { role: "model", hook, ...of }, code: "invalid_request", failed } as const;
  return untilAborted(authored(piece, call), signal);
}

const failed = "failed in its own code, which no repetition mends";
