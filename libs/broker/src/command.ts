import { HoldpointError } from "@holdpoint/errors";
import { execFile } from "node:child_process";
import { access, constants } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import * as z from "zod";

export type Environment = Readonly<Record<string, string | undefined>>;

export interface CommandOptions {
  readonly env: Environment;
  readonly cwd?: string;
  /** After so long the command is killed. */
  readonly timeoutMs: number;
}

/** Characters of a failed command's output that its error repeats: the end, where the reason stands. */
const quotedCharacters = 600;
const maxOutputBytes = 16_777_216;

const run = promisify(execFile);
/** What a failed `execFile` throws. */
const Failure = z.object({ message: z.string(), stderr: z.string().default("") });

/**
 * What `command` printed on its standard output.
 *
 * @throws HoldpointError `unavailable` where it cannot be run, fails, or takes longer than `timeoutMs`
 */
export async function outputOf(command: string, args: readonly string[], options: CommandOptions): Promise<string> {
  const { env, cwd, timeoutMs } = options;
  const where = cwd === undefined ? {} : { cwd };
  try {
    const settings = { env: { ...env }, timeout: timeoutMs, maxBuffer: maxOutputBytes, ...where };
    return (await run(command, [...args], settings)).stdout;
  } catch (cause) {
    const said = Failure.safeParse(cause).data ?? { message: String(cause), stderr: "" };
    const reason = (said.stderr.trim() === "" ? said.message : said.stderr.trim()).slice(-quotedCharacters);
    throw new HoldpointError("unavailable", `\`${[command, ...args].join(" ")}\` failed: ${reason}`, { cause });
  }
}

/** Every executable file called `name` on the `PATH` of `env`, in its order. */
export async function onPath(name: string, env: Environment): Promise<string[]> {
  const file = process.platform === "win32" ? `${name}.exe` : name;
  const folders = (env["PATH"] ?? "").split(delimiter).filter((folder) => folder !== "");
  const found = await Promise.all(folders.map((folder) => isExecutable(join(folder, file))));
  return folders.filter((_, index) => found[index] === true).map((folder) => join(folder, file));
}

export async function isExecutable(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
