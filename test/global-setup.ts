/** Once before all tests: the broker's programs are in the cache, so that no test file waits for them, or builds them twice. */
import { provideCli, provideServer } from "@holdpoint/broker";

function onProgress(text: string): void {
  process.stderr.write(`${text}\n`);
}

export async function setup(): Promise<void> {
  await provideServer({ onProgress });
  await provideCli({ onProgress });
}
