/** What a role says of itself: how its sessions change, and what it does when a checkpoint is taken, restored or released. */
import type { EventSchema } from "@holdpoint/eventsourcing";
import type { Blocker, Episode, Mode, ParticipantEvent, Role } from "@holdpoint/schemas";
import type { Session, SessionEvent, SessionKind } from "@holdpoint/session";

/** What stands on the log of a role whose own events are `Own`. */
export type LogEvent<Own> = Own | ParticipantEvent;

/**
 * The hooks of a role. Each may be left out. `signal` is aborted at the deadline, and when the operation is over for another
 * reason, such as a resume; what a hook began by then it takes back or leaves to be collected. One that ignores it is not waited
 * for: what it gives then counts no more, and the next ask may call it while it still runs.
 */
export interface RoleHooks<State, Own> {
  /** What a prepare has to wait for, now. Asked again after each change; quick, and without side effects. */
  readonly blockers?: () => readonly Blocker[];
  /** Admission has closed: whatever waits for a boundary should come to one. */
  readonly closed?: (checkpointId: string) => void;
  /** Admission is open again. */
  readonly opened?: () => void;
  /** Inside the hold: fixes what cannot live in the log, such as copy-on-write snapshots. Its events precede the capture. */
  readonly capture?: (
    sessions: readonly Session<State>[],
    checkpointId: string,
    signal: AbortSignal,
  ) => Promise<readonly Own[]>;
  /** After the hold: makes durable what `capture` fixed. */
  readonly commit?: (
    checkpointId: string,
    options: { readonly stop: boolean },
    signal: AbortSignal,
  ) => Promise<readonly Own[]>;
  /** Validates everything first, then rebuilds what cannot live in the log; its events follow the restored sessions'. */
  readonly restore?: (sessions: readonly Session<State>[], signal: AbortSignal) => Promise<readonly Own[]>;
  /** Stops the work of these attempts and all before them, waits for it, and frees what they hold. */
  readonly retire?: (marks: readonly Episode[], signal: AbortSignal) => Promise<readonly Own[]>;
  /**
   * Frees external state that only the checkpoints in `dropped` need, or that none needs. Idempotent; may run beside anything, also
   * beside a capture of the next checkpoint, which is in neither list.
   */
  readonly release?: (released: Released, signal: AbortSignal) => Promise<readonly Own[]>;
}

/** Checkpoints by what a release made of them. */
export interface Released {
  readonly kept: readonly string[];
  readonly dropped: readonly string[];
}

export interface RoleSpec<State, Own extends SessionEvent> {
  readonly role: Role;
  readonly mode: Mode;
  readonly kind: SessionKind<State, LogEvent<Own>>;
  readonly schema: EventSchema<LogEvent<Own>>;
}
