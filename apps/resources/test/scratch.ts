/** Folders of a test, on memory where there is some: gone after it. */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach } from "vitest";

const top = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();
const made: string[] = [];

afterEach(() => {
  for (const folder of made.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** An empty folder, absolute. */
export function scratchFolder(): string {
  const folder = mkdtempSync(join(top, "resources-test-"));
  made.push(folder);
  return folder;
}
