/** Asking the policy model over HTTP, in the manner of OpenAI's chat completions. */
import { errorCodes, HoldpointError } from "@holdpoint/errors";
import { parseJson } from "@holdpoint/eventsourcing";
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
    return outcomeOf(response.status, new Uint8Array(await response.arrayBuffer()));
  } catch (error) {
    signal.throwIfAborted();
    if (HoldpointError.is(error)) throw error;
    return undefined; // connection refused or broken: the model is away
  }
}

/** @returns undefined for what is worth another try */
function outcomeOf(status: number, body: Uint8Array): ModelReply | undefined {
  const json = parseJson(body);
  const value = json.ok ? json.value : undefined;
  if (status === 200) return { status: "answered", message: messageOf(value) };
  const refusal = Refusal.safeParse(value);
  const { code, message } = refusal.success ? refusal.data.error : { code: undefined, message: `status ${status}` };
  if (code === "admission_closed") return { status: "parked" };
  if (status >= 500 || status === 429) return undefined;
  const known = errorCodes.find((one) => one === code) ?? "invalid_request";
  const refused = new HoldpointError(known, `the model refused: ${message}`);
  if (refused.disposition === "retry") return undefined;
  throw refused;
}

/** The message, as it came. @throws HoldpointError `invalid_request` where it is no completion: the same call gives the same again */
function messageOf(value: unknown): string {
  const completion = Completion.safeParse(value);
  if (completion.success) return JSON.stringify(completion.data.choices[0].message);
  const why = z.prettifyError(completion.error);
  throw new HoldpointError("invalid_request", `the model answered with no chat completion:\n${why}`);
}
