/** The contract of the hooks for state that cannot live in the log, such as a database, a sandbox or a remote account. */
import type { Episode, Json } from "@holdpoint/schemas";

/** Which session a hook is about: external state is best named by rollout and attempt. */
export interface SessionName extends Episode {
  /** The same for every attempt of the episode. */
  readonly sessionId: string;
}

/** What hooks free: the live state of a session, or what a capture made. */
export type Unneeded = { readonly session: SessionName } | { readonly reference: Json };

/** What a release leaves, and what it drops. A checkpoint that is being taken is in neither list. */
export interface Release {
  /** Checkpoints that may still be restored. */
  readonly kept: readonly string[];
  readonly dropped: readonly string[];
  /**
   * Of this worker, and of what it took over: what kept checkpoints, live sessions, and restored ones that nobody has claimed yet refer
   * to.
   */
  readonly references: readonly Json[];
}

/**
 * What each of them has to stand:
 *
 * - **Again.** A process that was killed is followed by one that does the same again. Each hook finds what an earlier call left, whole
 *   or in parts, and ends in the same state.
 * - **Beside others.** Hooks of different sessions run at once, up to 16 of one kind, and beside live seeds and tool calls of other
 *   sessions. Of one session no tool call is in flight during `capture` and `install`.
 * - **In several workers.** Each worker of an instance asks for its own sessions, and frees what it made, or took over, itself.
 * - **Failing.** A `HoldpointError` of `invalid_request`, `not_found`, `unauthorized`, `unavailable`, `deadline_exceeded` or
 *   `invalid_checkpoint_state` goes out as it is. Of anything else the words stay in the log of the process; it is told as
 *   `unavailable`, but from `open` as `invalid_request`: the seed fails for good, and its episode with it.
 * - **The signal** is aborted at the operation's deadline, and when the operation or the session is over. What a hook began by then it
 *   takes back, or leaves to `release`. A hook that ignores the signal holds up whoever waits for it.
 */
export interface ExternalState {
  /**
   * Sets up what a session needs, before it is first seeded; never for one that was restored. Where it throws there is no session, and
   * `free` is called.
   */
  readonly open: (session: SessionName, signal: AbortSignal) => Promise<void>;
  /**
   * Fixes the state as it is now, inside the hold, for as long as it takes: be quick, such as by a copy on write. What was made for a
   * capture that failed is freed by its reference with the next release; what has none is for `release` to find.
   *
   * @returns where `install` finds it, a reference that no other capture has; JSON of at most 16 KiB, without secrets, since it is
   *   written to the log
   */
  readonly capture: (session: SessionName, checkpointId: string, signal: AbortSignal) => Promise<Json>;
  /**
   * Makes the state that `reference` names the state of `session`, which is a new attempt; whatever stands there is replaced, and the
   * reference stays good. All sessions of a restore are installed, or none: where one throws, `free` is called for all that were.
   */
  readonly install: (reference: Json, session: SessionName, signal: AbortSignal) => Promise<void>;
  /**
   * Frees the live state of a session that is over, or was not made, whatever was captured of it; or what a capture made, once no
   * checkpoint and no session refers to it. May run beside anything, also beside the capture of the next checkpoint.
   */
  readonly free: (unneeded: Unneeded, signal?: AbortSignal) => Promise<void>;
  /**
   * After a release has freed what it knew: frees what else was made for the checkpoints in `dropped`, and is in no reference, such as
   * what a process made that was killed before it could say so, or what a worker that was removed had captured. May run beside anything. Absent: there is nothing to look for.
   */
  readonly release?: (release: Release, signal: AbortSignal) => Promise<void>;
}
