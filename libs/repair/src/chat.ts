/** The messages of a conversation, as OpenAI's chat completions have them; what is not used here is let through. */
import * as z from "zod";

const TextParts = z.array(z.object({ type: z.literal("text"), text: z.string() }));

export const ToolCall = z.object({
  id: z.string(),
  type: z.literal("function"),
  /** `arguments`: JSON text, as the policy wrote it. */
  function: z.object({ name: z.string(), arguments: z.string() }),
});
export type ToolCall = z.infer<typeof ToolCall>;

export const AssistantMessage = z.object({
  role: z.literal("assistant"),
  content: z.union([z.string(), TextParts]).nullish(),
  tool_calls: z.array(ToolCall).optional(),
});
export type AssistantMessage = z.infer<typeof AssistantMessage>;

export const ChatMessage = z.discriminatedUnion("role", [
  z.object({ role: z.literal("system"), content: z.union([z.string(), TextParts]) }),
  z.object({ role: z.literal("user"), content: z.union([z.string(), TextParts]) }),
  AssistantMessage,
  z.object({ role: z.literal("tool"), tool_call_id: z.string(), content: z.union([z.string(), TextParts]) }),
]);
export type ChatMessage = z.infer<typeof ChatMessage>;

/** The text of a message; of several parts, joined. */
export function textOf(message: ChatMessage): string {
  const content = message.content ?? "";
  return typeof content === "string" ? content : content.map((part) => part.text).join("");
}

/** Model calls that `messages` show as answered: the number of the turn that comes next, from 0. */
export function turnOf(messages: readonly ChatMessage[]): number {
  return messages.filter((message) => message.role === "assistant").length;
}

/** A message of tool calls. Their ids are those of the turn and the index, so that a repeated request gets the same. */
export function callTools(turn: number, calls: readonly { readonly name: string; readonly arguments: unknown }[]) {
  return {
    role: "assistant",
    content: null,
    tool_calls: calls.map(({ name, arguments: input }, index) => ({
      id: `call-${turn}-${index}`,
      type: "function" as const,
      function: { name, arguments: JSON.stringify(input) },
    })),
  } as const satisfies AssistantMessage;
}
