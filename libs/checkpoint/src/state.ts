/**
 * What the coordinator knows, folded from the stream.
 *
 * The maps and sets in it are its books: they grow with processes, rollouts and commands under way, never with what sessions
 * do, and the fold changes them in place. So a state belongs to its fold; keep no older one.
 */
import type {
  Adoption,
  Asked,
  Assignment,
  Blocker,
  Command,
  Cut,
  Edges,
  Episode,
  Holding,
  Mode,
  Operation,
  Outcome,
  Phase,
  Problem,
  Result,
  Role,
  StreamPromise,
} from "@holdpoint/schemas";
import type { ReadCommand } from "./input.ts";
import type { RemoteSpan } from "./traceparent.ts";

/** One process of a participant, by its announcements. Never dropped: a restore fences also those that left (L8). */
export interface Process {
  readonly key: string;
  readonly role: Role;
  readonly instance: string;
  readonly worker: string;
  readonly incarnation: string;
  readonly mode: Mode;
  readonly endpoint: string | null;
  readonly announcedSequence: number;
  readonly announcedAtMs: number;
  readonly lastAtMs: number | null;
  /** Expected from the event that it joined to the event that it left, also while it is silent. */
  readonly expected: boolean;
  /** The announcement that `control` repeats so far; 0: none. */
  readonly joinedSequence: number;
  /** It said goodbye, and `control` does not repeat that yet. */
  readonly leaving: boolean;
  /** The sequence of the coordinator's last fence on its log; 0: none. */
  readonly fencedAt: number;
}

/** A session as one process fixed it for the open checkpoint. */
export interface CapturedSession extends Episode {
  readonly digest: string;
  readonly edges: Edges;
}

/** What one process answered to one ask. */
export interface Answer {
  readonly sequence: number;
  readonly problem: Problem | undefined;
  readonly blockers: readonly Blocker[];
  readonly blockerCount: number;
  readonly restarts: readonly Episode[];
  readonly continued: readonly Episode[];
  readonly digest: string | undefined;
  readonly sessions: number;
  readonly installed: readonly Episode[];
  readonly adopted: readonly { readonly worker: string; readonly digest: string }[];
  readonly captured: readonly CapturedSession[];
}

/** An ask of a command under way, with the answers so far, by process. */
export interface AskRecord {
  readonly sequence: number;
  readonly operation: Asked;
  readonly roles: readonly Role[];
  readonly askedAtMs: number;
  readonly remainingMs: number;
  readonly answers: Map<string, Answer>;
  /** Its share of the time is over. */
  readonly passed: boolean;
}

/** A command that was accepted and has no outcome yet. */
export interface Op {
  /** The command's sequence. */
  readonly command: number;
  readonly order: Command;
  /** What makes another command the same one. */
  readonly key: string;
  /** The command that it joined: the outcome of that one serves both. */
  readonly joins: number | undefined;
  readonly joinedOutcome: Outcome | undefined;
  /** When the command arrived. */
  readonly atMs: number;
  /** The span of whoever sent it, where it named one. */
  readonly sender: RemoteSpan | undefined;
  readonly deadlineAtMs: number;
  readonly timedOut: boolean;
  /** It has failed already, and only cleans up. */
  readonly failure: Problem | undefined;
  /** What was open when the command itself resumed it. */
  readonly past: Open | undefined;
  readonly asks: readonly AskRecord[];
}

/** A command that waits for its turn. */
export interface Queued extends ReadCommand {
  readonly sequence: number;
  readonly atMs: number;
  readonly sender?: RemoteSpan | undefined;
}

/** The cut that stands. */
export interface Captured {
  readonly sequence: number;
  readonly atMs: number;
  readonly scope: readonly Episode[];
  readonly holdings: readonly Holding[];
  /** By process; for the commit's comparison of both ends of each call (L5). */
  readonly sessions: ReadonlyMap<string, readonly CapturedSession[]>;
}

/** The checkpoint, or the restore, that is open. */
export interface Open {
  readonly checkpointId: string;
  readonly kind: "checkpoint" | "restore";
  readonly openedAtMs: number;
  readonly prepared:
    | { readonly atMs: number; readonly restarts: readonly Episode[]; readonly continued: readonly Episode[] }
    | undefined;
  /** What anybody has answered that cannot be captured, to whichever prepare of this id: it stays so until resume. */
  readonly restarts: readonly Episode[];
  /** What kept the last prepare from getting ready; undefined once one did. */
  readonly stalled: Pick<Result, "blockers" | "blockerCount" | "failures"> | undefined;
  readonly captured: Captured | undefined;
  readonly proceeded: boolean;
  /** When it ends by itself, stream time; infinity in streams older than leases. */
  readonly leaseUntilMs: number;
  /** A process serves again since its lease ran out there. */
  readonly expired: boolean;
  readonly restorableAtMs: number | undefined;
  readonly restore:
    | {
        readonly source: string;
        readonly assignments: readonly Assignment[];
        readonly adoptions: readonly Adoption[];
      }
    | undefined;
  /** The recorded success of each operation on it, until resume. */
  readonly successes: ReadonlyMap<Operation, { readonly key: string; readonly result: Result }>;
}

/** A checkpoint that can be restored. */
export interface Restorable {
  readonly checkpointId: string;
  readonly cut: Cut;
  readonly anchor: string;
  readonly scope: readonly Episode[];
  readonly holdings: readonly Holding[];
}

/** What of a rollout outlives its attempts. */
export interface Rollout {
  /** The highest attempt that the log has ever opened, burnt ones included (L7). */
  readonly highest: number;
  /** The highest attempt that is retired; -1: none. */
  readonly mark: number;
  /** Attempts opened and neither ended nor retired. */
  readonly live: readonly number[];
}

export interface Unreadable {
  readonly sequence: number;
  readonly subject: string;
  readonly problem: Problem;
}

export interface CoordinatorState {
  readonly run: string;
  readonly stream: string;
  /** Of the last message folded, and of the last one on `control`. */
  readonly sequence: number;
  readonly controlSequence: number;
  /** The incarnation that decides; undefined before the first, and after one that stopped of its own accord. */
  readonly leader: string | undefined;
  readonly promise: StreamPromise | undefined;
  readonly phase: Phase;
  readonly open: Open | undefined;
  /** By the order of first resume. */
  readonly lastResumed: string | undefined;
  readonly unreadable: readonly Unreadable[];
  readonly stale: Set<string>;
  readonly processes: Map<string, Process>;
  /** Processes whose announcement or goodbye `control` does not repeat yet. */
  readonly unmirrored: Set<string>;
  /** Where each log subject ends. */
  readonly ends: Map<string, number>;
  /** Commands not decided yet, in order. */
  readonly queue: Map<number, Queued>;
  readonly ops: Map<number, Op>;
  /** The command of each ask of a command under way. */
  readonly askers: Map<number, number>;
  /** What each process has captured since the last ask to capture. */
  readonly captures: Map<string, CapturedSession[]>;
  readonly rollouts: Map<string, Rollout>;
  /** Oldest first. */
  readonly restorable: Map<string, Restorable>;
}

/** What the coordinator of `run` knows before it has read anything of `stream`. */
export function initialState(run: string, stream: string): CoordinatorState {
  return {
    run,
    stream,
    sequence: 0,
    controlSequence: 0,
    leader: undefined,
    promise: undefined,
    phase: "idle",
    open: undefined,
    lastResumed: undefined,
    unreadable: [],
    stale: new Set(),
    processes: new Map(),
    unmirrored: new Set(),
    ends: new Map(),
    queue: new Map(),
    ops: new Map(),
    askers: new Map(),
    captures: new Map(),
    rollouts: new Map(),
    restorable: new Map(),
  };
}
