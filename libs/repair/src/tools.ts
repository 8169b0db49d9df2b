/**
 * The tools of a repair: their names, arguments and answers. Running them is the business of the resources server, which
 * uses `applyEdit`, `formatReport` and `toolFailure`, so that every answer is one that the policy can read.
 *
 * The calls of one turn are run one after the other, in the order of their index.
 */
import * as z from "zod";

/** A path of a file of the package, relative to its folder. */
const path = z.string().min(1).max(4096);

export const toolArguments = {
  list_files: z.strictObject({}),
  read_file: z.strictObject({ path }),
  edit_file: z.strictObject({
    path,
    line: z.int().positive().describe("Number of the line, from 1."),
    old: z.string().describe("The whole line as it is now, without its line end."),
    new: z.string().describe("The whole line as it shall be, without its line end."),
  }),
  run_tests: z.strictObject({}),
} as const;

export type ToolName = keyof typeof toolArguments;

/** One edit of one line. */
export type LineEdit = Omit<z.infer<typeof toolArguments.edit_file>, "path">;

const descriptions: Readonly<Record<ToolName, string>> = {
  list_files: "Lists the files of the package, one path per line.",
  read_file: "Returns the text of one file.",
  edit_file: "Replaces one line of one file. Fails, and changes nothing, unless the line is now exactly `old`.",
  run_tests: "Runs the package's own tests and reports which failed.",
};

/** Every tool, by the order in which they are usually needed. */
export const toolNames = ["list_files", "read_file", "edit_file", "run_tests"] as const satisfies readonly ToolName[];

/** Whether `name` is one of the tools. */
export function isToolName(name: string): name is ToolName {
  return toolNames.some((known) => known === name);
}

/** The `tools` of a chat completions request. */
export const toolDefinitions = toolNames.map((name) => ({
  type: "function" as const,
  function: { name, description: descriptions[name], parameters: z.toJSONSchema(toolArguments[name], { io: "input" }) },
}));

const failurePrefix = "error: ";

/** The answer of a tool that could not do what was asked. */
export function toolFailure(message: string): string {
  return `${failurePrefix}${message}`;
}

export function isToolFailure(answer: string): boolean {
  return answer.startsWith(failurePrefix);
}

/** A text after an edit, or why it is as before; `answer` is the tool's. */
export interface Edited {
  readonly text: string;
  readonly answer: string;
}

/** Replaces the line that `edit` names, if it is what `edit` says it is. Lines end at a line feed. */
export function applyEdit(text: string, edit: LineEdit): Edited {
  const lines = text.split("\n");
  const found = lines[edit.line - 1];
  if (found === undefined)
    return { text, answer: toolFailure(`line ${edit.line} is past the end, at ${lines.length}`) };
  if (found !== edit.old) return { text, answer: toolFailure(`line ${edit.line} reads ${JSON.stringify(found)}`) };
  if (/\n/.test(edit.new)) return { text, answer: toolFailure("`new` has more than one line") };
  return { text: lines.with(edit.line - 1, edit.new).join("\n"), answer: `edited line ${edit.line}\n` };
}
