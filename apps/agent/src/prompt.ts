/** A conversation to and from what the model is sent: the same state always gives the same bytes. */
import { AssistantMessage, type ChatMessage, promptOf, seedOf, Task, toolDefinitions } from "@holdpoint/repair";
import type { Content } from "@holdpoint/schemas";
import * as z from "zod";
import { type Conversation, turnsOf } from "./conversation.ts";

/** What an episode of the repair workload is seeded with: the task, and the run's seed. No attempt is in it. */
export const AgentSeed = z.looseObject({ task: Task, seed: z.int().nonnegative() });

/** A model's message, as its response's text says. */
export function parseResponse(text: string): AssistantMessage {
  return AssistantMessage.parse(JSON.parse(text));
}

/** The body of the next model call. */
export async function requestBody(
  conversation: Conversation,
  { rollout, policyVersion }: { readonly rollout: string; readonly policyVersion: number },
  read: (content: Content) => Promise<string>,
): Promise<string> {
  const { task, seed } = AgentSeed.parse(JSON.parse(await read(conversation.seed)));
  const messages: ChatMessage[] = [...promptOf(task)];
  for (const { response, results } of turnsOf(conversation)) {
    const message = parseResponse(await read(response));
    messages.push(message);
    for (const [index, call] of (message.tool_calls ?? []).entries()) {
      const result = results[index];
      if (result !== undefined) messages.push({ role: "tool", tool_call_id: call.id, content: await read(result) });
    }
  }
  return JSON.stringify({
    model: `softmax@${policyVersion}`,
    messages,
    tools: toolDefinitions,
    seed: seedOf(seed, rollout, conversation.calls.received),
  });
}
