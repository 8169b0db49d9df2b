/** The last line of a test run: how many passed, failed and were skipped, in words that any reader of logs finds. */
import type { Reporter, TestModule } from "vitest/node";

export class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const states = modules.flatMap((module) => [...module.children.allTests()].map((test) => test.result().state));
    const count = (wanted: string) => states.filter((state) => state === wanted).length;
    const broken = modules.filter((module) => module.errors().length > 0).length;
    const line = `${count("passed")} passed, ${count("failed") + broken} failed, ${count("skipped")} skipped`;
    process.stdout.write(`\n${line}\n`);
  }
}
