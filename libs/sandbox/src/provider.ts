/**
 * What a sandbox provider can do. `dir` is the first; others (overlay, containers) are to meet the same words.
 *
 * 1. Ids are the caller's, one subject token each, so that a lost answer hides nothing: what was asked for has a name.
 * 2. A restore point is a snapshot taken on purpose, never the live sandbox: `fork` reads snapshots alone.
 * 3. No path leaves the sandbox, neither by `..` nor through a symbolic link.
 * 4. What a killed process left half-done has a temporary name and is garbage; what has its own name is whole.
 */
import * as z from "zod";

/** What a provider really can, and not what it tries. */
export interface Capabilities {
  /** Snapshots and forks share what was not changed. */
  readonly copyOnWrite: boolean;
  /** `freeze` stops every process for certain, also one that tries to get away. */
  readonly freeze: boolean;
  /** Snapshots hold running processes with their memory. */
  readonly memory: boolean;
  /** What keeps a process in the sandbox. */
  readonly isolation: "none" | "namespaces" | "virtual_machine";
}

/** How a checkpoint names a snapshot. */
export const SnapshotReference = z.object({
  /** The name of the provider that took it. */
  provider: z.string(),
  snapshotId: z.string(),
  /** Of its tree: `treeDigest`. */
  digest: z.string(),
});
export type SnapshotReference = z.infer<typeof SnapshotReference>;

export interface TakenSnapshot extends SnapshotReference {
  readonly files: number;
  readonly sizeBytes: number;
  /** Paths of sockets, pipes and devices: no snapshot can hold them. */
  readonly skipped: readonly string[];
}

export interface ExecRequest {
  /** Program and arguments. No shell reads them. */
  readonly command: readonly [string, ...string[]];
  /** Relative to the sandbox. Default: its top. */
  readonly cwd?: string;
  /** Beside `PATH`, `HOME` and what the provider itself sets; nothing else is inherited. */
  readonly env?: Readonly<Record<string, string>>;
  /** Default: none. */
  readonly input?: string | Uint8Array;
  /** After this it is killed with all that it started. Positive. */
  readonly timeoutMs: number;
  /** CPU seconds after which the process is killed, whatever the clock says. Default: no limit. */
  readonly cpuSeconds?: number;
  /** Of each stream; what comes after is dropped. Default: 1 MiB. */
  readonly maxOutputBytes?: number;
  /** Called with what is written, as it is written. */
  readonly onOutput?: (chunk: Uint8Array, stream: "stdout" | "stderr") => void;
  /** Kills it, as the timeout does; the call then fails with the reason. */
  readonly signal?: AbortSignal;
}

export interface ExecResult {
  /** null where a signal ended it. */
  readonly exitCode: number | null;
  /** Such as `SIGKILL`; null where it ended by itself. */
  readonly signal: string | null;
  readonly timedOut: boolean;
  readonly stdout: string;
  readonly stderr: string;
  /** Whether output was dropped. */
  readonly truncated: boolean;
}

export interface SandboxStatus {
  readonly state: "absent" | "running" | "frozen";
  /** Commands that have not ended. */
  readonly execs: number;
}

export interface ListedFile {
  /** Relative to the sandbox, with `/`. */
  readonly path: string;
  readonly type: "file" | "folder" | "link" | "other";
  readonly sizeBytes: number;
}

/**
 * Every method that names a sandbox or a snapshot throws HoldpointError `invalid_request` for an id or a path that is none,
 * and `not_found` where there is no such sandbox; deleting what is not there is no error.
 */
export interface SandboxProvider {
  /** Written into every reference. */
  readonly name: string;
  readonly capabilities: Capabilities;

  /**
   * A new sandbox with a copy of the folder `template` of this machine.
   *
   * @throws HoldpointError `session_conflict` where the id is taken
   */
  create(sandboxId: string, template: string): Promise<void>;
  /** Every sandbox, by id. */
  list(): Promise<readonly string[]>;
  status(sandboxId: string): Promise<SandboxStatus>;
  /** Stops its processes and removes it. Its snapshots stay. Once more is no error. */
  delete(sandboxId: string): Promise<void>;

  /** Runs a command to its end. Waits while the sandbox is frozen. */
  exec(sandboxId: string, request: ExecRequest): Promise<ExecResult>;
  /** The content of a file. @throws HoldpointError `not_found` where there is none */
  readFile(sandboxId: string, path: string): Promise<Uint8Array>;
  /** Writes a whole file, or leaves it as it was; makes the folders above it. Waits while the sandbox is frozen. */
  writeFile(sandboxId: string, path: string, content: string | Uint8Array): Promise<void>;
  /** All that lies below `path` (default: the top), by path; links are not followed. */
  listFiles(sandboxId: string, path?: string): Promise<readonly ListedFile[]>;
  /** Copies a file of this machine into the sandbox. */
  upload(sandboxId: string, from: string, path: string): Promise<void>;
  /** Copies a file out of the sandbox to this machine. */
  download(sandboxId: string, path: string, to: string): Promise<void>;

  /** Stops what runs in it, as far as `capabilities` say, until `thaw`. */
  freeze(sandboxId: string): Promise<void>;
  /** Once more is no error. */
  thaw(sandboxId: string): Promise<void>;

  /**
   * A consistent copy under a new id. The sandbox runs on afterwards.
   *
   * @throws HoldpointError `session_conflict` where the id is taken, `unavailable` where the tree would not hold still
   */
  snapshot(sandboxId: string, snapshotId: string): Promise<TakenSnapshot>;
  /** Returns once the snapshot would survive a loss of power. @throws HoldpointError `invalid_checkpoint_state`: none there */
  makeDurable(snapshotId: string): Promise<void>;
  /**
   * Reads the snapshot through and compares; touches nothing.
   *
   * @throws HoldpointError `invalid_checkpoint_state` where it is missing, changed, or another provider's
   */
  validate(reference: SnapshotReference): Promise<void>;
  /**
   * A new sandbox that starts from a snapshot.
   *
   * @throws HoldpointError as `validate`, leaving nothing; `session_conflict` where the sandbox's id is taken
   */
  fork(reference: SnapshotReference, sandboxId: string): Promise<void>;
  /** Every whole snapshot, by id. */
  listSnapshots(): Promise<readonly StoredSnapshot[]>;
  deleteSnapshot(snapshotId: string): Promise<void>;
  /** What killed processes left half-done. */
  listLeftovers(): Promise<readonly string[]>;
  removeLeftovers(): Promise<void>;

  /** Stops every process that was started here. Sandboxes and snapshots stay. */
  close(): Promise<void>;
}

/** A snapshot that is there, and whether whoever took it may still be about to say so in the log. */
export interface StoredSnapshot {
  readonly snapshotId: string;
  /** The process that took it runs, and is not this one. */
  readonly foreign: boolean;
}
