/** What every command works with, and how it ends: 0 done, 1 failed, 2 wrong usage. */
import { HoldpointError } from "@holdpoint/errors";
import type { CommandContext } from "@stricli/core";

export const exitCodes = { ok: 0, failed: 1, usage: 2 } as const;

export interface CliContext extends CommandContext {
  readonly process: CommandContext["process"] & {
    exitCode?: number | string | null;
  };
}

/** Performs a command. What it throws becomes words on standard error, or JSON on standard output, and an exit code. */
export async function perform(
  context: CliContext,
  { json }: { readonly json: boolean },
  work: () => Promise<number>,
): Promise<void> {
  try {
    context.process.exitCode = await work();
  } catch (error) {
    context.process.exitCode = HoldpointError.is(error, "invalid_request") ? exitCodes.usage : exitCodes.failed;
    if (json) context.process.stdout.write(`${JSON.stringify({ ok: false, problem: problemOf(error) })}\n`);
    else context.process.stderr.write(`holdpoint: ${wordsOf(error)}\n`);
  }
}

/** Words for a person; of what is no error of ours, and so a bug, where it happened too. */
function wordsOf(error: unknown): string {
  if (HoldpointError.is(error)) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

function problemOf(error: unknown): object {
  if (!HoldpointError.is(error)) return { message: wordsOf(error) };
  return { code: error.code, message: error.message, details: error.details };
}

/** Aborted by Ctrl-C and by SIGTERM, so that commands that run long can end in order. The second time ends at once. */
export function interruption(): AbortSignal {
  const controller = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.once(signal, () => controller.abort(new HoldpointError("unavailable", `ended by ${signal}`)));
  }
  return controller.signal;
}
