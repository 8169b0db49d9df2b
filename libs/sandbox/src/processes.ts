/**
 * Finding the processes of sandboxes, also those that left their group, by a mark in their environment.
 *
 * The mark says who started them and for what. A process that clears its environment is not found: the `dir` provider
 * isolates nothing. Where there is no `/proc` nothing is found, and only process groups are reached.
 */
import { readdirSync, readFileSync } from "node:fs";
import { isRunning, isSystemError, thisProcess } from "./leftovers.ts";

const variable = "HOLDPOINT_SANDBOX";
const pattern = new RegExp(`(?:^|\\0)${variable}=([\\d-]+):(\\d+):([^\\0]*)`);

/** What a process was started for. */
export interface Mark {
  /** Tells the commands apart that one process has started. */
  readonly exec: number;
  /** Of the sandbox. */
  readonly folder: string;
}

/** A process that carries a mark. */
export interface Marked extends Mark {
  readonly pid: number;
  /** Who started it, named as `thisProcess` is. */
  readonly owner: string;
}

/** The variable to start a process of a sandbox with. */
export function environmentOf({ exec, folder }: Mark): Readonly<Record<string, string>> {
  return { [variable]: `${thisProcess}:${exec}:${folder}` };
}

/** Every process that carries a mark, corpses aside. Some milliseconds. */
function markedProcesses(): readonly Marked[] {
  return processIds().flatMap((pid) => {
    const mark = pattern.exec(read(`/proc/${pid}/environ`));
    const [, owner = "", exec = "", folder = ""] = mark ?? [];
    return mark === null ? [] : [{ pid, owner, exec: Number(exec), folder }];
  });
}

/** Kills what was started in sandboxes below `root` by processes that no longer run. */
export function killOrphans(root: string): Promise<boolean> {
  return sendAll(({ owner, folder }) => folder.startsWith(`${root}/`) && !isRunning(owner), "SIGKILL");
}

/** Signals a process, or with a negative `pid` a group. No error where there is none. */
export function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (!isSystemError(error, "ESRCH")) throw error;
  }
}

/**
 * Signals all marked processes that `match`, and those they start meanwhile, until all have obeyed.
 *
 * @returns false where some have not after many rounds
 */
export async function sendAll(match: (found: Marked) => boolean, signal: "SIGKILL" | "SIGSTOP"): Promise<boolean> {
  const obeyed = signal === "SIGKILL" ? /^[ZX]/ : /^[TtZX]/;
  for (let round = 0; round < maxRounds; round += 1) {
    const left = markedProcesses().filter((found) => match(found) && !obeyed.test(stateOf(found.pid)));
    if (left.length === 0) return true;
    for (const { pid } of left) send(pid, signal);
    await pause();
  }
  return false;
}

/** Lets go on what `sendAll` has stopped. */
export function continueAll(match: (found: Marked) => boolean): void {
  for (const found of markedProcesses().filter(match)) send(found.pid, "SIGCONT");
}

/** Rounds of a few milliseconds each: only a process stuck in the kernel outlasts them. */
const maxRounds = 500;

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 2));
}

function processIds(): readonly number[] {
  try {
    return readdirSync("/proc").map(Number).filter(Number.isInteger);
  } catch {
    return [];
  }
}

/** One letter of the kernel's, such as `R` or `T`; `X` where there is no such process. */
function stateOf(pid: number): string {
  const stat = read(`/proc/${pid}/stat`);
  return stat === "" ? "X" : stat.slice(stat.lastIndexOf(")") + 2);
}

function read(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}
