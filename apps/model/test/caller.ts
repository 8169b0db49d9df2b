/** What callers of the model do: ask over HTTP, as the agent, or as a harness that knows nothing of checkpoints. */
import { callTools, type ChatMessage, promptOf, seedOf, toolDefinitions } from "@holdpoint/repair";
import * as z from "zod";

const assignment = {
  package: "minimist",
  version: "1.2.8",
  file: "index.js",
  hint: { fromLine: 1, toLine: 30 },
};

/** The body of an agent's call: the same for the same turn and messages. */
export function bodyOf(
  turn: number,
  options: { readonly model?: string; readonly later?: readonly ChatMessage[] } = {},
) {
  const messages = [...promptOf(assignment), ...(options.later ?? [])];
  const model = options.model ?? "scripted";
  return JSON.stringify({ model, messages, tools: toolDefinitions, seed: seedOf(1, "r1", turn), turn });
}

const source = "module.exports = function (a, b) {\n  return a === 1 || b > 0 ? a + b : a - b;\n};\n";

/** Messages after which the softmax policy has to choose, so that it stages something. */
export const undecided: readonly ChatMessage[] = [
  callTools(0, [{ name: "list_files", arguments: {} }]),
  { role: "tool", tool_call_id: "call-0-0", content: "index.js" },
  callTools(1, [
    { name: "read_file", arguments: { path: "index.js" } },
    { name: "run_tests", arguments: {} },
  ]),
  { role: "tool", tool_call_id: "call-1-0", content: source },
  { role: "tool", tool_call_id: "call-1-1", content: "1 of 2 tests failed.\nnot ok: adds two numbers\n" },
];

export interface Identity {
  readonly rollout?: string;
  readonly attempt?: number;
  /** undefined: the caller does not name its turns. */
  readonly turn?: number | undefined;
  /** Default: true. */
  readonly aware?: boolean;
  /** Default: false. */
  readonly restart?: boolean;
}

export function headersOf(identity: Identity): Record<string, string> {
  const { rollout = "r1", attempt = 0, turn, aware = true, restart = false } = identity;
  return {
    "content-type": "application/json",
    "x-holdpoint-rollout": rollout,
    "x-holdpoint-attempt": String(attempt),
    ...(turn !== undefined && { "x-holdpoint-turn": String(turn) }),
    ...(aware && { "x-holdpoint-aware": "1" }),
    ...(restart && { "x-holdpoint-restart": "1" }),
  };
}

const Reply = z.object({
  error: z.object({ code: z.string(), message: z.string(), type: z.string(), param: z.null() }).optional(),
  choices: z.array(z.object({ message: z.looseObject({ role: z.string() }), finish_reason: z.string() })).optional(),
  usage: z.record(z.string(), z.number()).optional(),
});

export interface Replied {
  readonly status: number;
  readonly text: string;
  readonly headers: Headers;
  readonly code: string | undefined;
  readonly message: string;
}

export async function post(
  url: string,
  body: string,
  headers: Readonly<Record<string, string>>,
  signal?: AbortSignal,
): Promise<Replied> {
  const init = { method: "POST", body, headers, ...(signal && { signal }) };
  const response = await fetch(`${url}/v1/chat/completions`, init);
  const text = await response.text();
  const reply = Reply.parse(JSON.parse(text));
  const message = reply.error?.message ?? JSON.stringify(reply.choices?.[0]?.message);
  return { status: response.status, text, headers: response.headers, code: reply.error?.code, message };
}

/** Asks as `identity`, with the body of its turn. */
export function ask(url: string, identity: Identity, body = bodyOf(identity.turn ?? 0)): Promise<Replied> {
  return post(url, body, headersOf(identity));
}
