/**
 * Running one command in a folder, in a process group of its own.
 *
 * When the command ends, by itself or killed, what is left of its group is killed too. What left the group and still holds its
 * output is killed by its mark. A command counts as ended when its output is closed.
 */
import { HoldpointError } from "@holdpoint/errors";
import { type ChildProcessByStdio, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import { isSystemError, thisProcess } from "./leftovers.ts";
import { environmentOf, type Mark, send, sendAll } from "./processes.ts";
import type { ExecRequest, ExecResult } from "./provider.ts";

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

export interface RunningExec {
  /** Also the id of its group; 0 where it did not start. */
  readonly pid: number;
  readonly result: Promise<ExecResult>;
}

/** How long the output may stay open after the command has ended and its group was killed, before strays are looked for. */
const graceMs = 200;
const defaultMaxOutputBytes = 1024 * 1024;

let counter = 0;

/**
 * Starts a command.
 *
 * @param folder of the sandbox; `cwd`, in it, is where the command starts
 */
export function startExec(folder: string, cwd: string, request: ExecRequest): RunningExec {
  counter += 1;
  const mark: Mark = { exec: counter, folder };
  const [program, ...rest] = limited(request);
  const child = spawn(program, rest, {
    cwd,
    env: { PATH: process.env["PATH"], HOME: folder, ...request.env, ...environmentOf(mark) },
    stdio: ["pipe", "pipe", "pipe"],
    detached: true,
  });
  return { pid: child.pid ?? 0, result: follow(child, mark, request) };
}

/** The shell sets the limit and then becomes the command. */
function limited({ command, cpuSeconds }: ExecRequest): readonly [string, ...string[]] {
  if (cpuSeconds === undefined) return command;
  return ["/bin/sh", "-c", `ulimit -t ${Math.ceil(cpuSeconds)}; exec "$0" "$@"`, ...command];
}

async function follow(child: Child, mark: Mark, request: ExecRequest): Promise<ExecResult> {
  const stdout = capture(child.stdout, "stdout", request);
  const stderr = capture(child.stderr, "stderr", request);
  child.stdin.on("error", () => {}); // it need not read its input
  child.stdin.end(request.input ?? "");
  const closed = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const limits = watch(child, mark, request);
  try {
    const { exitCode, signal } = await ended(child, request);
    killGroup(child);
    const strays = setTimeout(() => void killStrays(mark), graceMs);
    await closed;
    clearTimeout(strays);
    request.signal?.throwIfAborted();
    const truncated = stdout.isTruncated() || stderr.isTruncated();
    return { exitCode, signal, timedOut: limits.timedOut(), stdout: stdout.text(), stderr: stderr.text(), truncated };
  } finally {
    limits.stop();
  }
}

function ended(child: Child, { command }: ExecRequest): Promise<Pick<ExecResult, "exitCode" | "signal">> {
  return new Promise((resolve, reject) => {
    child.once("exit", (exitCode, signal) => resolve({ exitCode, signal }));
    child.once("error", (cause) => {
      const missing = isSystemError(cause, "ENOENT", "EACCES", "ENOTDIR");
      const message = `cannot run ${JSON.stringify(command[0])}: is it installed, and executable?`;
      reject(missing ? new HoldpointError("invalid_request", message, { cause }) : cause);
    });
  });
}

/** Kills the command when its time is up or it is called off. */
function watch(child: Child, mark: Mark, { timeoutMs, signal }: ExecRequest) {
  let timedOut = false;
  const kill = () => {
    killGroup(child);
    void killStrays(mark);
  };
  const timer = setTimeout(() => {
    timedOut = true;
    kill();
  }, timeoutMs);
  signal?.addEventListener("abort", kill, { once: true });
  if (signal?.aborted === true) kill();
  return {
    timedOut: () => timedOut,
    stop: () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", kill);
    },
  };
}

function killGroup(child: Child): void {
  if (child.pid !== undefined) send(-child.pid, "SIGKILL");
}

function killStrays(mark: Mark): Promise<boolean> {
  return sendAll((found) => found.exec === mark.exec && found.owner === thisProcess, "SIGKILL");
}

/** Keeps what `stream` says, up to the limit. */
function capture(stream: Readable, name: "stdout" | "stderr", request: ExecRequest) {
  const { maxOutputBytes = defaultMaxOutputBytes, onOutput } = request;
  const chunks: Buffer[] = [];
  let kept = 0;
  let truncated = false;
  stream.on("data", (chunk: Buffer) => {
    onOutput?.(chunk, name);
    const part = chunk.subarray(0, maxOutputBytes - kept);
    chunks.push(part);
    kept += part.length;
    truncated ||= part.length < chunk.length;
  });
  return { text: () => Buffer.concat(chunks).toString("utf8"), isTruncated: () => truncated };
}
