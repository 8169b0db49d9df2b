/** What 10,000 sessions take in the process that holds them, and what is left of them after forget, over 100,000 rollouts. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";

export async function measureMemory(): Promise<string> {
  const program = new URL("memory-process.ts", import.meta.url).pathname;
  const { stdout } = await promisify(execFile)(process.execPath, ["--expose-gc", program]);
  return stdout;
}
