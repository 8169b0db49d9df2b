/** The routes of the model server. */
import { HoldpointError } from "@holdpoint/errors";
import type { Logger } from "@holdpoint/telemetry";
import { readCall } from "./chat-request.ts";
import { completion, errorAnswer, type HttpAnswer } from "./chat-response.ts";
import type { Handle, HttpCall } from "./http-server.ts";
import type { ModelCalls } from "./model-calls.ts";
import type { Policies } from "./define-model.ts";

export interface Api {
  /** Answers a chat completion. @throws HoldpointError what the caller is told */
  readonly complete: (call: HttpCall) => Promise<HttpAnswer>;
  readonly policies: Policies;
  readonly logger: Logger;
}

/** Answers every request, errors included. Neither headers nor bodies are ever logged: they hold credentials and texts. */
export function apiOf(api: Api): Handle {
  return async (call) => {
    try {
      return await route(api, call);
    } catch (error) {
      const answer = errorAnswer(error);
      const { method, path } = call;
      const why = mistakeOf(error);
      if (why !== undefined) api.logger.error({ err: why, method, path }, "a request failed");
      return answer;
    }
  };
}

/** What only whoever wrote this, or a policy, can mend; undefined where there is nothing of that kind. */
function mistakeOf(error: unknown): unknown {
  if (!HoldpointError.is(error)) return error;
  return error.code === "invalid_request" ? error.cause : undefined;
}

async function route(api: Api, call: HttpCall): Promise<HttpAnswer> {
  const { method, path } = call;
  switch (`${method} ${path}`) {
    case "POST /v1/chat/completions":
      return api.complete(call);
    case "GET /v1/models":
      return { status: 200, body: modelList(api.policies.names()) };
    case "GET /health":
      return { status: 200, body: { status: "ok" } };
    default:
      throw new HoldpointError(
        "not_found",
        `no ${method} ${path}; there are POST /v1/chat/completions, GET /v1/models, GET /health`,
      );
  }
}

/** Answers from the ledger of the caller's episode. */
export async function completeCall(calls: ModelCalls, http: HttpCall): Promise<HttpAnswer> {
  const call = readCall(http.headers, http.body, http.signal);
  const { row, text } = await calls.answer(call);
  const { turn, promptTokens, completionTokens } = row;
  const id = `${call.episode.rollout}-${turn}`;
  const body = completion({ id, model: call.request.model, text, promptTokens, completionTokens });
  return { status: 200, headers: { "x-holdpoint-turn": String(turn) }, body };
}

function modelList(names: readonly string[]): object {
  return { object: "list", data: names.map((id) => ({ id, object: "model", created: 0, owned_by: "holdpoint" })) };
}
