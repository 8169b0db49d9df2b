/** What the agent is told at the start of a rollout. The site of the flip is not in it, only lines that it lies in. */
import type { ChatMessage } from "./chat.ts";
import type { Task } from "./task.ts";

const system = `You repair a JavaScript package in a sandbox. Use the tools. Calls of one turn are run in order.
Change as little as possible, and never the tests: the untouched ones decide.
When all tests pass, or when you give up, answer without calling a tool.`;

/** The part of a task that an agent may know. */
export type Assignment = Pick<Task, "package" | "version" | "file" | "hint">;

/** The messages that a rollout starts with. */
export function promptOf({ package: name, version, file, hint }: Assignment): readonly ChatMessage[] {
  const user = `One operator or literal of the package ${name} ${version} was changed, and its own tests now fail.
The change is in ${file}, lines ${hint.fromLine} to ${hint.toLine}. Find it and undo it.`;
  return [
    { role: "system", content: system },
    { role: "user", content: user },
  ];
}

/** Where the prompt says that the change is; `undefined` where `text` is no prompt of ours. */
export function readPrompt(text: string): Pick<Task, "file" | "hint"> | undefined {
  const [, file, from, to] = /^The change is in (\S+), lines (\d+) to (\d+)\./m.exec(text) ?? [];
  if (file === undefined) return undefined;
  return { file, hint: { fromLine: Number(from), toLine: Number(to) } };
}
