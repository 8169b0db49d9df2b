/** A chat completion that belongs to no episode. */
import { randomBytes } from "node:crypto";
import { callSeed } from "./call-seed.ts";
import { readRequest } from "./chat-request.ts";
import { completion, type HttpAnswer } from "./chat-response.ts";
import type { Policies } from "./define-model.ts";
import type { HttpCall } from "./http-server.ts";
import { type Caller, policyOf, replied } from "./replied.ts";

interface Judge extends Pick<Caller, "trouble"> {
  readonly policies: Policies;
}

/** Asks the policy that the request names. Without a seed each call has one of its own. */
export async function judgeCall({ policies, trouble }: Judge, { body, signal }: HttpCall): Promise<HttpAnswer> {
  const request = readRequest(body);
  const policy = await policyOf(policies, request.model, { signal, trouble });
  const id = randomBytes(8).toString("hex");
  const seed = callSeed({ rollout: id, turn: 0 }, request.seed);
  const { staged: _, ...reply } = await replied(policy, request, { seed, signal, trouble });
  signal.throwIfAborted();
  return { status: 200, body: completion({ id, model: request.model, ...reply }) };
}
