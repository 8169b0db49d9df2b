/** What goes back, in the shapes of OpenAI's chat completions. */
import { type ErrorCode, HoldpointError } from "@holdpoint/errors";
import * as z from "zod";

export interface HttpAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: object;
}

/** A message with its keys in their order, so that it has the same digest at both ends. */
const WrittenMessage = z.record(z.string(), z.unknown());
const ToolCalls = z.array(z.unknown()).nullish();

/** A finished call. */
export interface Completed {
  readonly id: string;
  readonly model: string;
  /** The assistant message as JSON. */
  readonly text: string;
  readonly promptTokens: number;
  readonly completionTokens: number;
}

/** The completion of a call. One that is asked again gets the same bytes, so no clock is in it. */
export function completion({ id, model, text, promptTokens, completionTokens }: Completed) {
  const message = WrittenMessage.parse(JSON.parse(text));
  const callsTools = (ToolCalls.parse(message["tool_calls"]) ?? []).length > 0;
  return {
    id: `chatcmpl-${id}`,
    object: "chat.completion",
    created: 0,
    model,
    choices: [{ index: 0, message, logprobs: null, finish_reason: callsTools ? "tool_calls" : "stop" }],
    usage: {
      prompt_tokens: promptTokens,
      completion_tokens: completionTokens,
      total_tokens: promptTokens + completionTokens,
    },
  };
}

const statuses: Readonly<Record<ErrorCode, number>> = {
  invalid_request: 400,
  rollout_id_required: 400,
  unauthorized: 401,
  not_found: 404,
  session_conflict: 409,
  stale_attempt: 409,
  stale_checkpoint: 409,
  checkpoint_conflict: 409,
  invalid_phase: 409,
  restart_in_scope: 409,
  invalid_checkpoint_state: 409,
  admission_closed: 503,
  unavailable: 503,
  deadline_exceeded: 504,
};

/**
 * An error as OpenAI's clients read it, with our code. What is not ours is a bug, and its text stays here; so it is where it looks
 * like ours, and its code is none that there is.
 */
export function errorAnswer(error: unknown): HttpAnswer {
  if (!HoldpointError.is(error) || !Object.hasOwn(statuses, error.code)) return internalError;
  const { code, message, disposition } = error;
  // OpenAI's clients repeat a 409 by themselves unless they are told not to.
  const headers = disposition === "retry" ? { "retry-after": "1" } : { "x-should-retry": "false" };
  return { ...errorBody(statuses[code], code, message), headers };
}

/** The last answer that there is: nothing can be wrong with it. */
export const internalError = errorBody(500, "internal_error", "internal error; the server's log says more");

function errorBody(status: number, code: string, message: string): HttpAnswer {
  const type = status < 500 ? "invalid_request_error" : "server_error";
  return { status, body: { error: { message, type, param: null, code } } };
}
