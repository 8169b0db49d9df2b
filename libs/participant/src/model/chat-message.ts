/** The messages of OpenAI's chat completions, as far as a model server looks into them. */
import * as z from "zod";

const Content = z.union([z.string(), z.array(z.looseObject({ type: z.string(), text: z.string().optional() }))]);

const ToolCalls = z.array(
  z.looseObject({
    id: z.string(),
    /** `arguments`: JSON text, as the policy wrote it. */
    function: z.looseObject({ name: z.string(), arguments: z.string() }),
  }),
);

const Message = z.looseObject({
  role: z.enum(["system", "developer", "user", "assistant", "tool"]),
  content: Content.nullish(),
  tool_calls: ToolCalls.nullish(),
});
export type ChatMessage = z.infer<typeof Message>;

/** A message as it came, with its keys in their order: written again it is the same text. */
export const ChatMessage = z.custom<ChatMessage>((value) => Message.safeParse(value).success, {
  error: "expected a message { role, content, … } as OpenAI's chat completions have it",
});

/** What a policy says. Beside these, any field of OpenAI's; of the content, text alone. */
const Assistant = z.looseObject({
  role: z.literal("assistant"),
  content: Content.nullish(),
  tool_calls: ToolCalls.nullish(),
});
/** Also of a type that says less than this one, or that cannot be changed. */
export interface AssistantMessage {
  readonly role: "assistant";
  readonly content?: unknown;
  readonly tool_calls?: unknown;
}

/** An assistant message as it came; undefined where `value` is none. */
export function assistantMessage(value: unknown): ChatMessage | undefined {
  return Assistant.safeParse(value).success ? ChatMessage.parse(value) : undefined;
}

/** The text of a message; of several parts, joined. */
export function textOf({ content }: ChatMessage): string {
  if (typeof content === "string") return content;
  return (content ?? []).map(({ text = "" }) => text).join("");
}
