/** What the policy `scripted` says: for tests only. */
import { HoldpointError } from "@holdpoint/errors";
import { type ScriptedCall, toolNames } from "@holdpoint/repair";
import { readFile } from "node:fs/promises";
import * as z from "zod";

/** The tool calls of each turn. */
export type Script = readonly (readonly ScriptedCall[])[];

const ScriptFile = z.array(z.array(z.object({ name: z.enum(toolNames), arguments: z.record(z.string(), z.json()) })));

/**
 * The script in a file: a JSON array with, for each turn, an array of tool calls `{name, arguments}`.
 *
 * @throws HoldpointError `invalid_request` where the file cannot be read, or holds no script
 */
export async function readScript(path: string): Promise<Script> {
  try {
    return ScriptFile.parse(JSON.parse(await readFile(path, "utf8")));
  } catch (cause) {
    const why = cause instanceof z.ZodError ? z.prettifyError(cause) : String(cause);
    const expected = "expected a JSON array with an array of {name, arguments} for each turn";
    throw new HoldpointError("invalid_request", `HOLDPOINT_SCRIPT_FILE ${path}: ${expected}\n${why}`, { cause });
  }
}
