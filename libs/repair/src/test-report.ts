/**
 * What a run of a package's tests says, from its output to the reward.
 *
 * The output is read as TAP as far as it goes: a run that crashed, hung and was killed, or printed rubbish is a report
 * too, of a run that did not end. Nothing of a report depends on where the package lay, so that the same source gives the
 * same report in every sandbox.
 */

export interface TestFailure {
  /** The name of the test that the assertion stands in; empty where none was printed. */
  readonly test: string;
  readonly assertion: string;
  /** File name and line of the assertion, such as `bool.js:151`; empty where none was printed. */
  readonly at: string;
  readonly expected: string;
  readonly actual: string;
}

export interface TestReport {
  /** Assertions, by the plan at the end of the output; null where the run did not get there. */
  readonly planned: number | null;
  readonly passed: number;
  readonly failed: number;
  readonly failures: readonly TestFailure[];
  /** The message of the error that ended the run early; null where there is none. */
  readonly crash: string | null;
  /** Lines of the package's `index.js` that stack traces name, ascending, each once. */
  readonly sourceLines: readonly number[];
}

/** Longest name, message or value that a report keeps, in UTF-16 units. */
const maxTextLength = 200;

/** How many failures a printed report names. */
const maxNamedFailures = 10;

const patterns = {
  plan: /^1\.\.(\d+)$/,
  title: /^# (.*)/,
  result: /^(not ok|ok) \d+ ?(.*)/,
  at: /^ {4}at: (.*)/m,
  // A value of several lines starts on the next one.
  expected: /^ {4}expected: *(?:\|-\n)?(.*)/m,
  actual: /^ {4}actual: *(?:\|-\n)?(.*)/m,
  location: /^(?!.*node_modules).*?([^/\\\s(]+:\d+):\d+\)?$/,
  crash: /^[A-Za-z]*Error\b.*/m,
  folders: /(?<=[\s'"(])(?:\/[^\s/'"()]+)+\//g,
  sourceLine: /^(?!.*node_modules).*[/\\]index\.js:(\d+)\b/,
};

/** Reads the output (standard output, then standard error) of `testArguments`. Never throws. */
export function parseTestReport(output: string): TestReport {
  const lines = output.split(/\r?\n/);
  const results = resultsOf(lines);
  const failures = results.filter((failure) => failure !== undefined);
  const plan = lines.map((line) => patterns.plan.exec(line)?.[1]).find((count) => count !== undefined);
  return {
    planned: plan === undefined ? null : Number(plan),
    passed: results.length - failures.length,
    failed: failures.length,
    failures,
    crash: plan === undefined ? crashOf(output) : null,
    sourceLines: sourceLinesOf(lines),
  };
}

/** Whether every one of the package's `expectedTests` ran and passed, and the run came to its end. */
export function allPassed(report: TestReport, expectedTests: number): boolean {
  return report.planned === expectedTests && report.passed === expectedTests && report.failed === 0;
}

/** 1 where all tests pass; else half the share of `expectedTests` (positive) that pass, so at most 0.5. */
export function rewardOf(report: TestReport, expectedTests: number): number {
  if (allPassed(report, expectedTests)) return 1;
  return Math.min(report.passed / expectedTests, 1) / 2;
}

/** The report as the agent reads it: what `run_tests` answers. */
export function formatReport(report: TestReport, expectedTests: number): string {
  if (allPassed(report, expectedTests)) return `All ${expectedTests} tests passed.\n`;
  const named = report.failures.slice(0, maxNamedFailures);
  const lines = [
    `${report.passed} of ${expectedTests} tests passed, ${report.failed} failed.`,
    ...named.flatMap(formatFailure),
  ];
  if (report.failed > named.length) lines.push(`and ${report.failed - named.length} more failures`);
  if (report.planned === null) lines.push(`The run did not come to its end: ${report.crash ?? "no reason given"}`);
  if (report.sourceLines.length > 0) lines.push(`Stack traces name index.js at ${report.sourceLines.join(", ")}.`);
  return `${lines.join("\n")}\n`;
}

/** What `formatReport` printed, as far as a policy needs it. */
export interface ReadReport {
  readonly passed: boolean;
  /** Words of at least four letters in the names of failed tests and assertions, in lower case. */
  readonly words: ReadonlySet<string>;
  readonly sourceLines: ReadonlySet<number>;
}

export function readReport(text: string): ReadReport {
  const named = [...text.matchAll(/^not ok: (.*)$/gm)].map((match) => match[1] ?? "");
  const words = named.flatMap((name) => wordsOf(name));
  const lines = /^Stack traces name index\.js at ([\d, ]+)\.$/m.exec(text)?.[1]?.split(", ") ?? [];
  return {
    passed: /^All \d+ tests passed\.$/m.test(text),
    words: new Set(words),
    sourceLines: new Set(lines.map(Number)),
  };
}

/** Words of at least four letters, in lower case. */
export function wordsOf(text: string): readonly string[] {
  return text.toLowerCase().match(/[a-z]{4,}/g) ?? [];
}

function formatFailure(failure: TestFailure): readonly string[] {
  const name = failure.test === "" ? failure.assertion : `${failure.test}: ${failure.assertion}`;
  const details = (["at", "expected", "actual"] as const).filter((key) => failure[key] !== "");
  return [`not ok: ${name}`, ...details.map((key) => `  ${key}: ${failure[key]}`)];
}

/** What each assertion of the output came to: a failure, or `undefined` where it passed. */
function resultsOf(lines: readonly string[]): readonly (TestFailure | undefined)[] {
  const results: (TestFailure | undefined)[] = [];
  let test = "";
  for (const [index, line] of lines.entries()) {
    const [, verdict, assertion = ""] = patterns.result.exec(line) ?? [];
    if (verdict === "not ok")
      results.push({ test, assertion: assertion.slice(0, maxTextLength), ...detailsOf(lines, index + 1) });
    else if (verdict === "ok") results.push(undefined);
    else test = patterns.title.exec(line)?.[1]?.slice(0, maxTextLength) ?? test;
  }
  return results;
}

/** Of the block that follows a failed assertion, from line `from` on. */
function detailsOf(lines: readonly string[], from: number): Omit<TestFailure, "test" | "assertion"> {
  const length = lines.slice(from).findIndex((line) => !line.startsWith("  "));
  const block = lines.slice(from, length < 0 ? undefined : from + length).join("\n");
  return {
    at: patterns.location.exec(detailOf(block, patterns.at))?.[1] ?? "",
    expected: detailOf(block, patterns.expected).slice(0, maxTextLength),
    actual: detailOf(block, patterns.actual).slice(0, maxTextLength),
  };
}

function detailOf(block: string, pattern: RegExp): string {
  return pattern.exec(block)?.[1]?.trim() ?? "";
}

/** The first error that was printed, without the paths in its message. */
function crashOf(output: string): string | null {
  const message = patterns.crash.exec(output)?.[0];
  return message?.replaceAll(patterns.folders, "").slice(0, maxTextLength) ?? null;
}

function sourceLinesOf(lines: readonly string[]): readonly number[] {
  const found = lines.map((line) => Number(patterns.sourceLine.exec(line)?.[1] ?? 0)).filter((line) => line > 0);
  return [...new Set(found)].toSorted((one, other) => one - other);
}
