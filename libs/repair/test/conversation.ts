/** Conversations of a repair, made up turn by turn. */
import { breakSource, callTools, type ChatMessage, packages, promptOf, type Task, taskOf } from "@holdpoint/repair";
import { sourceOf } from "./workbench.ts";

const [spec] = packages.filter(({ name }) => name === "json-stable-stringify");
if (spec === undefined) throw new Error("json-stable-stringify is gone");

/** A task with sixty sites to choose from in ninety lines. */
export const task = taskOf({ seed: 11, spec });

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

export const failed = "1 of 27 tests passed, 26 failed.\n";
export const broken = breakSource(task, sourceOf(spec.name));
export const listed = ["list_files", {}, "index.js\n"] as const;
export const read = ["read_file", { path: "index.js" }, broken] as const;
export const tested = ["run_tests", {}, failed] as const;
