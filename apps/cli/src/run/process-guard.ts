/**
 * What ends our processes with us, however we end: a shell that reads the ids of their groups from a pipe, and kills those
 * that are left when the pipe breaks. Each process leads a group of its own, so that Ctrl-C in a terminal reaches us alone.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { Socket } from "node:net";

/** `+ <id>` and `- <id>` come in; at the end of them the groups that stayed are killed. */
const script = `trap '' INT TERM HUP
live=" "
while read -r sign id; do
  case $sign in
    +) live="$live$id " ;;
    -) live=$(printf %s "$live" | sed "s/ $id / /") ;;
  esac
done
for id in $live; do kill -9 "-$id" 2>/dev/null; done`;

export class ProcessGuard {
  readonly #live = new Set<number>();
  readonly #shell: ChildProcess | undefined;
  readonly #onExit = () => this.#endAll();

  constructor() {
    this.#shell = process.platform === "win32" ? undefined : startShell();
    process.on("exit", this.#onExit);
  }

  add(group: number): void {
    this.#live.add(group);
    this.#shell?.stdin?.write(`+ ${group}\n`);
  }

  /** To be called once the group's leader is gone and whatever it left was killed. */
  remove(group: number): void {
    this.#live.delete(group);
    this.#shell?.stdin?.write(`- ${group}\n`);
  }

  /** Kills what is left, and watches no more. */
  close(): void {
    this.#endAll();
    process.off("exit", this.#onExit);
  }

  #endAll(): void {
    for (const group of this.#live) killGroup(group);
    this.#live.clear();
    this.#shell?.kill("SIGKILL");
  }
}

/** Sends SIGKILL to all of a process group. Harmless where nothing is left of it. */
export function killGroup(group: number): void {
  try {
    process.kill(-group, "SIGKILL");
  } catch {
    // It has ended by itself.
  }
}

function startShell(): ChildProcess {
  const shell = spawn("/bin/sh", ["-c", script, "holdpoint-process-guard"], {
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });
  // Without a shell the exit handler is all there is.
  shell.on("error", () => {});
  shell.stdin?.on("error", () => {});
  shell.unref();
  if (shell.stdin instanceof Socket) shell.stdin.unref();
  return shell;
}
