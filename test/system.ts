/** A run that is up, as `holdpoint up` starts it, for tests of the whole. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import * as z from "zod";

const Up = z.object({
  run: z.string(),
  folder: z.string(),
  environments: z.object({ operator: z.string(), trainer: z.string() }),
});

export interface System {
  readonly process: ChildProcess;
  readonly run: string;
  readonly folder: string;
  /** What a process of this user is told by its environment. */
  environmentOf(user: "operator" | "trainer"): Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

/**
 * Starts broker, coordinator and participants; returns once they are started.
 *
 * @param flags further ones of `holdpoint up`
 */
export async function startSystem(flags: readonly string[] = []): Promise<System> {
  const child = spawn(process.execPath, ["apps/cli/src/main.ts", "up", "--json", ...flags], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "exit").then(() => ["{}"]);
  const [line] = await Promise.race([once(createInterface({ input: child.stdout }), "line"), ended]);
  const { run, folder, environments } = Up.parse(JSON.parse(String(line)));
  return {
    process: child,
    run,
    folder,
    environmentOf: (user) => readEnvironment(environments[user]),
    stop: async () => {
      child.kill("SIGINT");
      await once(child, "exit");
    },
  };
}

function readEnvironment(file: string): Readonly<Record<string, string>> {
  const exported = readFileSync(file, "utf8").matchAll(/^export (\w+)='(.*)'$/gm);
  return Object.fromEntries([...exported].map(([, name = "", value = ""]) => [name, value]));
}
