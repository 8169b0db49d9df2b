import { type ChatMessage, textOf } from "@holdpoint/repair";

/** What this server counts as tokens: words and single signs. Its policies are no language models, and have no tokenizer. */
export function tokensIn(messages: readonly ChatMessage[]): number {
  return messages.reduce((sum, message) => sum + wordsIn(textOf(message)) + wordsIn(callsOf(message)), 0);
}

function wordsIn(text: string): number {
  return text.match(/\w+|[^\w\s]/g)?.length ?? 0;
}

function callsOf(message: ChatMessage): string {
  if (message.role !== "assistant") return "";
  return (message.tool_calls ?? []).map(({ function: { name, arguments: input } }) => `${name} ${input}`).join(" ");
}
