/** What the processes of a run leave in their state folders. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import * as z from "zod";
import type { TrainerFacts } from "./record.ts";

const Final = z.object({ version: z.int(), weights: z.array(z.number()), weightsDigest: z.string() });

/** What the trainer says at its end, or why that cannot be read. */
export async function readTrainer(
  stateDir: string,
): Promise<{ readonly facts: TrainerFacts | null; readonly problems: readonly string[] }> {
  const path = join(stateDir, "final.json");
  try {
    const { version, weights, weightsDigest } = Final.parse(JSON.parse(await readFile(path, "utf8")));
    return { facts: { version, weights, digest: weightsDigest }, problems: [] };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return { facts: null, problems: [`the trainer left no weights in ${path}: ${why}`] };
  }
}

/** The text of the execution log; empty where nothing was ever executed. */
export async function readExecutionLog(stateDir: string): Promise<string> {
  return readFile(join(stateDir, "executions.jsonl"), "utf8").catch(() => "");
}
