/**
 * What this server really executed, outside the sandboxes and outside the stream: the witness that nothing ran twice.
 *
 * One JSON line for the beginning and one for the end of each execution, each written by one `write` to a file opened for
 * appending. A line outlives the process whenever that is killed. It is not synced: after a loss of power the `tool.started`
 * in the stream, which is, still names every call that may have begun.
 */
import type { Episode } from "@holdpoint/schemas";
import { closeSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";

export interface Execution extends Episode {
  readonly execution: string;
  /** null for a verify. */
  readonly turn: number | null;
  readonly index: number | null;
  /** Of the tool, or `verify`. */
  readonly name: string;
}

export class ExecutionLog {
  readonly #file: number;

  /** Opens `executions.jsonl` in `stateDir`, which exists. */
  constructor(stateDir: string) {
    this.#file = openSync(join(stateDir, "executions.jsonl"), "a");
  }

  /** Runs `work` between its two lines; one that fails, or is killed, has no end. */
  async during<Result>(execution: Execution, work: () => Promise<Result>): Promise<Result> {
    this.#write(execution, "begin");
    const result = await work();
    this.#write(execution, "end");
    return result;
  }

  close(): void {
    closeSync(this.#file);
  }

  #write({ execution, rollout, attempt, turn, index, name }: Execution, phase: "begin" | "end"): void {
    const at = new Date().toISOString();
    writeSync(this.#file, `${JSON.stringify({ execution, rollout, attempt, turn, index, name, phase, at })}\n`);
  }
}
