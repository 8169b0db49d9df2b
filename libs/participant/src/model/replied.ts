/** What a policy says to a request, read as it is written down. */
import type { ChatRequest } from "./chat-request.ts";
import { assistantMessage } from "./chat-message.ts";
import type { Policy, PolicyReply, ReplyOptions } from "./define-model.ts";
import { tokensIn } from "./tokens.ts";

export interface Replied {
  /** The assistant message as JSON. */
  readonly text: string;
  /** What a trainer needs of it, as JSON; null: nothing. */
  readonly staged: string | null;
  readonly promptTokens: number;
  readonly completionTokens: number;
}

/** @throws TypeError where the policy says no assistant message: whoever wrote it is told by the log, and no caller */
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
  const { staging = null, tokens } = reply;
  return {
    text: JSON.stringify(message),
    staged: staging === null ? null : JSON.stringify(staging),
    promptTokens: tokens?.prompt ?? tokensIn(request.messages),
    completionTokens: tokens?.completion ?? tokensIn([message]),
  };
}
