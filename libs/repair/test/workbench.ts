/** The environment of a repair in memory: its tests pass if and only if the file is unbroken. Sources are the real ones. */
import {
  allPassed,
  applyEdit,
  breakSource,
  type ChatMessage,
  formatReport,
  packageNamed,
  policyReply,
  promptOf,
  rewardOf,
  seedOf,
  type Staging,
  type Task,
  type TestReport,
  toolArguments,
  type ToolCall,
  turnOf,
} from "@holdpoint/repair";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const require = createRequire(import.meta.url);

/** The folder of an installed package. */
export function homeOf(name: string): string {
  return dirname(require.resolve(`${name}/package.json`));
}

/** The unbroken file of a package. */
export function sourceOf(name: string): string {
  return readFileSync(join(homeOf(name), "index.js"), "utf8");
}

export interface Bench {
  /** Answers a tool call, as the resources server would. */
  call(name: string, input: string): string;
  report(): TestReport;
  readonly source: () => string;
}

export function benchOf(task: Task): Bench {
  const original = sourceOf(task.package);
  const expectedTests = packageNamed(task.package)?.expectedTests ?? 0;
  let source = breakSource(task, original);
  const report = (): TestReport => {
    const failed = source === original ? 0 : 1;
    const failure = { test: "simulated", assertion: "passes", at: "", expected: "", actual: "" };
    const failures = failed === 0 ? [] : [failure];
    return { planned: expectedTests, passed: expectedTests - failed, failed, failures, crash: null, sourceLines: [] };
  };
  const answers: Readonly<Record<string, (input: unknown) => string>> = {
    list_files: () => "index.js\n",
    read_file: () => source,
    run_tests: () => formatReport(report(), expectedTests),
    edit_file: (input) => {
      const edited = applyEdit(source, toolArguments.edit_file.parse(input));
      source = edited.text;
      return edited.answer;
    },
  };
  return { call: (name, input) => answers[name]?.(JSON.parse(input)) ?? "no such tool", report, source: () => source };
}

export interface Episode {
  readonly messages: readonly ChatMessage[];
  readonly staged: readonly Staging[];
  readonly reward: number;
  readonly solved: boolean;
}

export interface EpisodeOptions {
  readonly task: Task;
  readonly rolloutId: string;
  readonly weights: readonly number[];
  readonly runSeed: number;
}

/** A whole rollout with the softmax policy. */
export function play({ task, rolloutId, weights, runSeed }: EpisodeOptions): Episode {
  const bench = benchOf(task);
  const expectedTests = packageNamed(task.package)?.expectedTests ?? 0;
  const messages: ChatMessage[] = [...promptOf(task)];
  const staged: Staging[] = [];
  for (let calls: readonly ToolCall[] | undefined = []; calls !== undefined;) {
    const seed = seedOf(runSeed, rolloutId, turnOf(messages));
    const { message, staging } = policyReply({ weights, messages, seed });
    messages.push(message);
    if (staging !== null) staged.push(staging);
    calls = message.tool_calls;
    for (const { id, function: wanted } of calls ?? []) {
      messages.push({ role: "tool", tool_call_id: id, content: bench.call(wanted.name, wanted.arguments) });
    }
  }
  const report = bench.report();
  return { messages, staged, reward: rewardOf(report, expectedTests), solved: allPassed(report, expectedTests) };
}
