/** Asking the policy model over HTTP, in the manner of OpenAI's chat completions. */
import { HoldpointError } from "@holdpoint/errors";
import type { Episode } from "@holdpoint/schemas";
import { setTimeout as delay } from "node:timers/promises";
import * as z from "zod";

const firstPauseMs = 20;
const maxPauseMs = 1_000;

/** `parked`: the model is closed for a checkpoint; the caller comes to its boundary and asks the same again after. */
export type ModelReply = { readonly status: "answered"; readonly message: string } | { readonly status: "parked" };

export interface ModelCall {
  readonly episode: Episode;
  readonly turn: number;
  readonly body: string;
  readonly signal: AbortSignal;
  /** Whether no checkpoint can hold the episode: then the model answers it while one is open. */
  readonly isRestart: () => boolean;
  /** Where the model serves now; undefined while it is away. */
  readonly endpoint: () => string | undefined;
}

const Completion = z.object({ choices: z.tuple([z.object({ message: z.record(z.string(), z.unknown()) })]) });
const Refusal = z.object({ error: z.looseObject({ message: z.string().catch(""), code: z.string().nullish() }) });

/**
 * Asks until there is an answer, also while the model is away: it may have delivered one that was lost on its way, and has to say
 * so before a checkpoint can hold the call. The same call, by its turn, is answered from its ledger if it was made before.
 *
 * @throws HoldpointError with the model's code where it refused for good, such as `stale_attempt`
 */
export async function askModel(call: ModelCall): Promise<ModelReply> {
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, maxPauseMs)) {
    call.signal.throwIfAborted();
    const reply = await once(call);
    if (reply !== undefined) return reply;
    await delay(pauseMs, undefined, { signal: call.signal });
  }
}

/** One request; undefined where nobody was there to answer it. */
async function once({ endpoint, isRestart, episode, turn, body, signal }: ModelCall): Promise<ModelReply | undefined> {
  const url = endpoint();
  if (url === undefined) return undefined;
  const headers = {
    "content-type": "application/json",
    "x-holdpoint-rollout": episode.rollout,
    "x-holdpoint-attempt": String(episode.attempt),
    "x-holdpoint-turn": String(turn),
    "x-holdpoint-aware": "1",
    "x-holdpoint-restart": isRestart() ? "1" : "0",
  };
  try {
    const response = await fetch(`${url}/v1/chat/completions`, { method: "POST", headers, body, signal });
    return outcomeOf(response.status, await response.text());
  } catch (error) {
    signal.throwIfAborted();
    if (HoldpointError.is(error)) throw error;
    return undefined; // connection refused or broken: the model is away
  }
}

function outcomeOf(status: number, text: string): ModelReply | undefined {
  const value: unknown = JSON.parse(text);
  if (status === 200)
    return { status: "answered", message: JSON.stringify(Completion.parse(value).choices[0].message) };
  const refusal = Refusal.safeParse(value);
  const code = refusal.success ? refusal.data.error.code : undefined;
  if (code === "admission_closed") return { status: "parked" };
  if (status >= 500 || status === 429) return undefined;
  const message = refusal.success ? refusal.data.error.message : `status ${status}`;
  throw new HoldpointError(code === "stale_attempt" ? code : "invalid_request", `the model refused: ${message}`);
}
