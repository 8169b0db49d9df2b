/** A request for a chat completion, as it comes over HTTP: who asks, for which call, and what. */
import { HoldpointError } from "@holdpoint/errors";
import { parseJson } from "@holdpoint/eventsourcing";
import { type Digest, type Episode, Token } from "@holdpoint/schemas";
import type { IncomingHttpHeaders } from "node:http";
import * as z from "zod";
import { sha256 } from "../hash.ts";
import { ChatMessage } from "./chat-message.ts";

/** What of OpenAI's request is used; the rest is let through, and is part of the request's digest. */
const ChatRequest = z.looseObject({
  model: z.string().min(1),
  messages: z.array(ChatMessage).min(1),
  seed: z.int().nullish(),
  stream: z.boolean().nullish(),
  n: z.int().nullish(),
});
export type ChatRequest = z.infer<typeof ChatRequest>;

const whole = z
  .string()
  .regex(/^(0|[1-9]\d{0,8})$/, "expected a whole number from 0")
  .transform(Number);

const IdentityHeaders = z.object({
  "x-holdpoint-rollout": Token,
  "x-holdpoint-attempt": whole,
  "x-holdpoint-turn": whole.optional(),
  "x-holdpoint-aware": z.enum(["0", "1"]).default("0"),
  "x-holdpoint-restart": z.enum(["0", "1"]).default("0"),
});

export interface PolicyCall {
  readonly episode: Episode;
  /** undefined: the caller does not name its turns; it is known by its request. */
  readonly turn: number | undefined;
  /** Whether the caller understands that a refusal means to park. */
  readonly aware: boolean;
  /** Whether no checkpoint can hold the episode: then none holds up its calls. */
  readonly restart: boolean;
  readonly request: ChatRequest;
  /** Of the whole body, so that only a byte-identical repeat is the same request. */
  readonly digest: Digest;
  /** Aborted when the caller has gone. */
  readonly signal: AbortSignal;
}

/**
 * The call that `headers` and `body` make.
 *
 * @throws HoldpointError `rollout_id_required` without identity; `invalid_request` where they are malformed, or ask for what
 *   this server cannot do
 */
export function readCall(headers: IncomingHttpHeaders, body: Uint8Array, signal: AbortSignal): PolicyCall {
  const identity = readIdentity(headers);
  return { ...identity, request: readRequest(body), digest: sha256(new TextDecoder().decode(body)), signal };
}

/** @throws HoldpointError `invalid_request` where `body` is no request that this server can answer */
export function readRequest(body: Uint8Array): ChatRequest {
  const json = parseJson(body);
  if (!json.ok) throw new HoldpointError("invalid_request", `the body is ${json.why}; expected a JSON object`);
  const request = ChatRequest.safeParse(json.value);
  if (!request.success) throw new HoldpointError("invalid_request", z.prettifyError(request.error));
  refuseUnsupported(request.data);
  return request.data;
}

function readIdentity(headers: IncomingHttpHeaders): Pick<PolicyCall, "episode" | "turn" | "aware" | "restart"> {
  if (headers["x-holdpoint-rollout"] === undefined || headers["x-holdpoint-attempt"] === undefined) {
    const expected = "expected the headers x-holdpoint-rollout (its id) and x-holdpoint-attempt (0, 1, …)";
    throw new HoldpointError("rollout_id_required", `a policy call belongs to a rollout: ${expected}`);
  }
  const identity = IdentityHeaders.safeParse(headers);
  if (!identity.success) throw new HoldpointError("invalid_request", z.prettifyError(identity.error));
  const { data } = identity;
  return {
    episode: { rollout: data["x-holdpoint-rollout"], attempt: data["x-holdpoint-attempt"] },
    turn: data["x-holdpoint-turn"],
    aware: data["x-holdpoint-aware"] === "1",
    restart: data["x-holdpoint-restart"] === "1",
  };
}

function refuseUnsupported({ stream, n }: ChatRequest): void {
  if (stream === true) {
    throw new HoldpointError("invalid_request", "stream is not supported yet: leave `stream` out, or set it to false");
  }
  if (typeof n === "number" && n !== 1) {
    throw new HoldpointError("invalid_request", `n is ${n}, and one choice is all there is: leave \`n\` out`);
  }
}
