/** Conversations of a repair, made up turn by turn. */
import { breakSource, callTools, type ChatMessage, packages, promptOf, type Task, taskOf } from "@holdpoint/repair";
import { sourceOf } from "./workbench.ts";

const [minimist] = packages.filter(({ name }) => name === "minimist");
if (minimist === undefined) throw new Error("minimist is gone");

/** A task with much to choose from. */
export const task = taskOf({ seed: 11, spec: minimist });

/** The prompt and then these turns: for each its tool calls with their answers. */
export function conversation(
  about: Task,
  ...turns: readonly (readonly (readonly [name: string, input: unknown, answer: string])[])[]
): readonly ChatMessage[] {
  return [
    ...promptOf(about),
    ...turns.flatMap((turn, index) => {
      const message = callTools(
        index,
        turn.map(([name, input]) => ({ name, arguments: input })),
      );
      const answers = turn.map(([, , content], at) => ({
        role: "tool" as const,
        tool_call_id: `call-${index}-${at}`,
        content,
      }));
      return [message, ...answers];
    }),
  ];
}

export const failed = "1 of 153 tests passed, 152 failed.\n";
export const broken = breakSource(task, sourceOf("minimist"));
export const listed = ["list_files", {}, "index.js\n"] as const;
export const read = ["read_file", { path: "index.js" }, broken] as const;
export const tested = ["run_tests", {}, failed] as const;
