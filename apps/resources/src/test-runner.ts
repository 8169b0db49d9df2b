/** Runs a package's own tests in a sandbox: no more at once than there are processors, so that none runs out of time for others. */
import { parseTestReport, testArguments, testCpuSeconds, type TestReport } from "@holdpoint/repair";
import type { SandboxProvider } from "@holdpoint/sandbox";
import { availableParallelism } from "node:os";
import type { InstalledPackage } from "./installed-package.ts";

/**
 * A bound for runs that wait for something; those that compute are ended by their CPU time. Generous: on a machine with more to
 * do than it can, no run that would come to its end may be cut short, since its end is the reward.
 */
const timeoutMs = 30_000;

export class TestRunner {
  readonly #provider: SandboxProvider;
  readonly #waiting: (() => void)[] = [];
  #free: number;

  /** @param lanes how many runs at once. Default: the number of processors */
  constructor(provider: SandboxProvider, lanes = availableParallelism()) {
    this.#provider = provider;
    this.#free = lanes;
  }

  /** @throws the signal's reason when it is aborted; HoldpointError `not_found` where there is no such sandbox */
  async run(sandbox: string, { spec, nodePath }: InstalledPackage, signal: AbortSignal): Promise<TestReport> {
    await this.#enter();
    try {
      signal.throwIfAborted();
      const { stdout, stderr } = await this.#provider.exec(sandbox, {
        command: [process.execPath, ...testArguments(spec)],
        env: { NODE_PATH: nodePath },
        timeoutMs,
        cpuSeconds: testCpuSeconds,
        signal,
      });
      return parseTestReport(`${stdout}${stderr}`);
    } finally {
      this.#leave();
    }
  }

  async #enter(): Promise<void> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  /** Hands the lane to whoever has waited longest. */
  #leave(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free += 1;
    else next();
  }
}
