import { type ChatMessage, textOf } from "./chat-message.ts";

/** What counts as tokens where a policy says nothing: words and single signs. */
export function tokensIn(messages: readonly ChatMessage[]): number {
  return messages.reduce((sum, message) => sum + wordsIn(textOf(message)) + wordsIn(callsOf(message)), 0);
}

function wordsIn(text: string): number {
  return text.match(/\w+|[^\w\s]/g)?.length ?? 0;
}

function callsOf({ tool_calls: calls }: ChatMessage): string {
  return (calls ?? []).map(({ function: { name, arguments: input } }) => `${name} ${input}`).join(" ");
}
