/**
 * The `scripted` policy, for tests only: it says in each turn what a list says, whatever it is told. It learns nothing and
 * reads nothing but the number of the turn, so that a repeated request gets the same answer.
 */
import { callTools, type ChatMessage, turnOf } from "./chat.ts";
import type { PolicyReply } from "./softmax-policy.ts";
import type { ToolName } from "./tools.ts";

export interface ScriptedCall {
  readonly name: ToolName;
  readonly arguments: unknown;
}

/** The tool calls of the turn that comes next; `done` where the script has ended. */
export function scriptedReply(
  script: readonly (readonly ScriptedCall[])[],
  messages: readonly ChatMessage[],
): PolicyReply {
  const turn = turnOf(messages);
  const calls = script[turn];
  const message = calls === undefined ? ({ role: "assistant", content: "done" } as const) : callTools(turn, calls);
  return { message, staging: null };
}
