/**
 * What ends a broker with the process that started it, however that ends: a shell that reads a pipe from us. When the pipe
 * breaks it kills the server it was last told of, and removes the folder it was started with. Where a process ends in order,
 * an exit handler has done the same before.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { rmSync } from "node:fs";
import { Socket } from "node:net";

export interface Guard {
  /** Takes `pid` for the process to end; `undefined`: there is none now. */
  watch(pid: number | undefined): void;
  /** Nothing is ended or removed any more. */
  release(): void;
}

/** A server that is being killed may still write for a moment: the folder is removed until it is gone. */
const script = `trap '' INT TERM HUP
pid=
while read -r line; do pid=$line; done
[ -z "$pid" ] || kill -9 "$pid" 2>/dev/null
tries=0
while [ -n "$1" ] && [ -e "$1" ] && [ $tries -lt 50 ]; do
  rm -rf -- "$1" 2>/dev/null || sleep 0.1
  tries=$((tries + 1))
done`;

/** What the exit handler does for each guard. */
const endings = new Set<() => void>();

/** @param temporary a folder that goes with the broker */
export function startGuard(temporary: string | undefined): Guard {
  const shell = process.platform === "win32" ? undefined : startShell(temporary ?? "");
  let watched: number | undefined;
  const ending = () => {
    shell?.kill("SIGKILL");
    if (watched !== undefined) killQuietly(watched);
    if (temporary !== undefined) rmSync(temporary, { recursive: true, force: true, maxRetries: 5 });
  };
  if (endings.size === 0) process.on("exit", endAll);
  endings.add(ending);
  return {
    watch: (pid) => {
      watched = pid;
      shell?.stdin?.write(`${pid ?? ""}\n`);
    },
    release: () => {
      shell?.kill("SIGKILL");
      endings.delete(ending);
      if (endings.size === 0) process.off("exit", endAll);
    },
  };
}

function startShell(temporary: string): ChildProcess {
  const shell = spawn("/bin/sh", ["-c", script, "holdpoint-broker-guard", temporary], {
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });
  // Without a shell, or once it is gone, the exit handler is all there is.
  shell.on("error", () => {});
  shell.stdin?.on("error", () => {});
  shell.unref();
  if (shell.stdin instanceof Socket) shell.stdin.unref();
  return shell;
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended by itself.
  }
}

function endAll(): void {
  for (const ending of endings) ending();
}
