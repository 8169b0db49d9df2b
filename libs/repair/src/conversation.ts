/** What a conversation of a repair has shown so far, read from its messages: all that a stateless policy knows. */
import { type ChatMessage, textOf } from "./chat.ts";
import { readPrompt } from "./prompt.ts";
import type { Task } from "./task.ts";
import { type ReadReport, readReport } from "./test-report.ts";
import { isToolFailure, type LineEdit, toolArguments } from "./tools.ts";

export interface Conversation {
  readonly assignment: Pick<Task, "file" | "hint"> | undefined;
  readonly listed: boolean;
  /** The file that was broken, as it was first read. */
  readonly source: string | undefined;
  /** The first report, from before any edit. */
  readonly firstReport: ReadReport | undefined;
  /** The latest report, unless the file was edited after it. */
  readonly currentReport: ReadReport | undefined;
  /** Edits asked for, oldest first. */
  readonly edits: readonly { readonly edit: LineEdit; readonly done: boolean }[];
}

/** A tool call with its answer. */
interface Step {
  readonly name: string;
  readonly input: string;
  readonly answer: string;
}

const nothing: Conversation = {
  assignment: undefined,
  listed: false,
  source: undefined,
  firstReport: undefined,
  currentReport: undefined,
  edits: [],
};

/** A call that is not answered is left out; so is an answer that nobody asked for. */
export function readConversation(messages: readonly ChatMessage[]): Conversation {
  const prompts = messages.filter((message) => message.role === "user").map((message) => readPrompt(textOf(message)));
  const assignment = prompts.find((prompt) => prompt !== undefined);
  return stepsOf(messages).reduce(after, { ...nothing, assignment });
}

function stepsOf(messages: readonly ChatMessage[]): readonly Step[] {
  const answers = new Map(
    messages.flatMap((message) => (message.role === "tool" ? [[message.tool_call_id, textOf(message)] as const] : [])),
  );
  const calls = messages.flatMap((message) => (message.role === "assistant" ? (message.tool_calls ?? []) : []));
  return calls.flatMap(({ id, function: { name, arguments: input } }) => {
    const answer = answers.get(id);
    return answer === undefined ? [] : [{ name, input, answer }];
  });
}

function after(known: Conversation, step: Step): Conversation {
  const failed = isToolFailure(step.answer);
  switch (step.name) {
    case "list_files":
      return { ...known, listed: true };
    case "read_file":
      return failed ? known : { ...known, source: known.source ?? step.answer };
    case "run_tests":
      return afterTests(known, readReport(step.answer));
    case "edit_file":
      return afterEdit(known, step, !failed);
    default:
      return known;
  }
}

function afterTests(known: Conversation, report: ReadReport): Conversation {
  return { ...known, firstReport: known.firstReport ?? report, currentReport: report };
}

function afterEdit(known: Conversation, step: Step, done: boolean): Conversation {
  const edit = toolArguments.edit_file.safeParse(tryJson(step.input));
  if (!edit.success) return known;
  return { ...known, currentReport: undefined, edits: [...known.edits, { edit: edit.data, done }] };
}

function tryJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
