/** A model server in one file, whose policy adds one until the counter says what the prompt asked for. */
import { type AssistantMessage, defineModel, runModel } from "@holdpoint/participant";

type Messages = readonly { readonly role: string; readonly content?: unknown }[];

/** What it says is a function of what it was told: asked again it says the same. */
function nextMessage(messages: Messages): AssistantMessage {
  const wanted = `the counter is ${String(messages[0]?.content)}`;
  if (messages.at(-1)?.content === wanted) return { role: "assistant", content: "done" };
  const call = { name: "add", arguments: JSON.stringify({ by: 1 }) };
  return {
    role: "assistant",
    content: null,
    tool_calls: [{ id: `call-${messages.length}`, type: "function", function: call }],
  };
}

export const counting = defineModel({
  name: "counting",
  mode: "exported",
  policies: {
    names: () => ["counting"],
    find: async () => ({ version: 0, reply: (messages) => ({ message: nextMessage(messages) }) }),
  },
});

if (import.meta.main) await runModel(counting);
