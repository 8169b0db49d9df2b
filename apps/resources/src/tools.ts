/**
 * The tools of a repair, run in a sandbox. What the model did wrong is an answer for the model; what the machine did wrong is
 * thrown, and never becomes part of a conversation.
 */
import { HoldpointError } from "@holdpoint/errors";
import {
  applyEdit,
  formatReport,
  isToolName,
  type LineEdit,
  toolArguments,
  toolFailure,
  type ToolName,
  toolNames,
} from "@holdpoint/repair";
import type { SandboxProvider } from "@holdpoint/sandbox";
import * as z from "zod";
import type { InstalledPackage } from "./installed-package.ts";
import type { TestRunner } from "./test-runner.ts";

/** Longest answer, in bytes of UTF-8; what comes after is cut off. */
export const maxAnswerBytes = 8_192;

/** Tools that leave the sandbox as it is, so that running one again after a crash harms nothing. */
const readOnly: ReadonlySet<ToolName> = new Set(["list_files", "read_file"]);

/** Whether a call of this name may change the sandbox. */
export function mayChange(name: string): boolean {
  return isToolName(name) && !readOnly.has(name);
}

export interface ToolInput {
  readonly name: string;
  /** JSON, as the model wrote it. */
  readonly arguments: string;
}

export interface Place {
  readonly sandbox: string;
  readonly target: InstalledPackage;
}

export class Tools {
  readonly #provider: SandboxProvider;
  readonly #tests: TestRunner;

  constructor(provider: SandboxProvider, tests: TestRunner) {
    this.#provider = provider;
    this.#tests = tests;
  }

  /**
   * What the tool answers.
   *
   * @throws HoldpointError `not_found` where the sandbox is gone; the signal's reason when it is aborted
   */
  async run(place: Place, { name, arguments: input }: ToolInput, signal: AbortSignal): Promise<string> {
    if (!isToolName(name)) return toolFailure(`there is no tool ${name}; there are ${toolNames.join(", ")}`);
    return cut(await this.#run(place, name, jsonOf(input), signal), maxAnswerBytes);
  }

  async #run(place: Place, name: ToolName, input: unknown, signal: AbortSignal): Promise<string> {
    switch (name) {
      case "list_files":
        return withArguments(toolArguments.list_files, input, () => this.#list(place));
      case "read_file":
        return withArguments(toolArguments.read_file, input, ({ path }) =>
          this.#withFile(place, path, async (text) => text),
        );
      case "edit_file":
        return withArguments(toolArguments.edit_file, input, (edit) => this.#edit(place, edit));
      case "run_tests":
        return withArguments(toolArguments.run_tests, input, async () => {
          const report = await this.#tests.run(place.sandbox, place.target, signal);
          return formatReport(report, place.target.spec.expectedTests);
        });
    }
  }

  async #list({ sandbox }: Place): Promise<string> {
    const listed = await this.#provider.listFiles(sandbox);
    return listed
      .filter(({ type }) => type === "file")
      .map(({ path }) => `${path}\n`)
      .join("");
  }

  #edit(place: Place, edit: LineEdit & { readonly path: string }): Promise<string> {
    return this.#withFile(place, edit.path, async (text) => {
      const edited = applyEdit(text, edit);
      if (edited.text !== text) await this.#provider.writeFile(place.sandbox, edit.path, edited.text);
      return edited.answer;
    });
  }

  /** Gives `use` the text of a file; a path that names none is the model's mistake, a sandbox that is gone is not. */
  async #withFile({ sandbox }: Place, path: string, use: (text: string) => Promise<string>): Promise<string> {
    let bytes: Uint8Array;
    try {
      bytes = await this.#provider.readFile(sandbox, path);
    } catch (error) {
      const isTheirs = HoldpointError.is(error, "invalid_request") || HoldpointError.is(error, "not_found");
      if (!isTheirs || (await this.#provider.status(sandbox)).state === "absent") throw error;
      return toolFailure(error.message);
    }
    return use(new TextDecoder().decode(bytes));
  }
}

function withArguments<Arguments>(
  schema: z.ZodType<Arguments>,
  input: unknown,
  use: (parsed: Arguments) => Promise<string>,
): Promise<string> {
  const parsed = schema.safeParse(input);
  if (parsed.success) return use(parsed.data);
  return Promise.resolve(toolFailure(`wrong arguments: ${z.prettifyError(parsed.error)}`));
}

/** The value of a JSON text; `undefined`, which no schema takes, where it is none. */
function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The first `maxBytes` of `text`, cut between characters, with a note of what is missing. */
export function cut(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= maxBytes) return text;
  let end = maxBytes;
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1; // not inside a character
  return `${bytes.toString("utf8", 0, end)}\n[cut off after ${end} of ${bytes.length} bytes]\n`;
}
