/** Folders for tests: in memory where there is such a file system, removed when the test file has ended. */
import { dirProvider, type SandboxProvider } from "@holdpoint/sandbox";
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll } from "vitest";

const top = realpathSync(mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "holdpoint-sandbox-")));
afterAll(() => rmSync(top, { recursive: true, force: true }));

let counter = 0;

/** A path that nothing uses yet. */
export function freshPath(): string {
  counter += 1;
  return join(top, `f${counter}`);
}

/** A new folder with these files. */
export function folderOf(files: Readonly<Record<string, string>>): string {
  const folder = freshPath();
  mkdirSync(folder);
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
  return folder;
}

export interface Opened {
  readonly provider: SandboxProvider;
  readonly root: string;
  /** Path of the folder of sandbox `s`, as seen from outside. */
  readonly folder: string;
}

/** A provider with a root of its own, and in it the sandbox `s` with these files. */
export async function openWith(files: Readonly<Record<string, string>> = { "index.js": "one\n" }): Promise<Opened> {
  const root = freshPath();
  const provider = await dirProvider({ root });
  await provider.create("s", folderOf(files));
  return { provider, root, folder: join(root, "sandboxes", "s") };
}

/** The content of a file of a sandbox, as text. */
export async function textIn(provider: SandboxProvider, sandbox: string, path: string): Promise<string> {
  return new TextDecoder().decode(await provider.readFile(sandbox, path));
}

/** Resolves once `condition` holds; asked every few milliseconds, and given up by the test's own bound alone. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 5));
}
