/** The contract of the hooks for state that cannot live in the log, such as a database, a sandbox or a remote account. */
import type { Episode, Json } from "@holdpoint/schemas";

/** Which session a hook is about: external state is best named by rollout and attempt. */
export interface SessionName extends Episode {
  /** The same for every attempt of the episode. */
  readonly sessionId: string;
}

/** What a release leaves. Nothing else that this server ever exported, or made for a session, is needed again. */
export interface NeededState {
  /** Checkpoints that may still be restored. */
  readonly kept: readonly string[];
  /** Checkpoints that this release drops. */
  readonly dropped: readonly string[];
  /** What live sessions, restored ones that nobody has claimed yet, and checkpoints refer to, that being taken among them. */
  readonly references: readonly Json[];
  /** Live sessions, those that are being seeded, and those of a restore that is under way. */
  readonly sessions: readonly SessionName[];
}

/**
 * What each of them has to stand:
 *
 * - **Again.** A process that was killed is followed by one that does the same again. Each hook finds what an earlier call left, whole
 *   or in parts, and ends in the same state.
 * - **Beside others.** Hooks of different sessions run at once, up to 16 of one kind, and beside live seeds and tool calls of other
 *   sessions. Of one session no tool call is in flight during `capture` and `install`.
 * - **In several workers.** Each worker of an instance asks for its own sessions; they share whatever they share. `release` runs in
 *   every worker, each with what it needs itself: free by what is named for this worker, or keep apart what each makes.
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
   * Fixes the state as it is now, inside the hold, for as long as it takes: be quick, such as by a copy on write. What one that failed
   * has made is left to `release`, since the next capture may be under way.
   *
   * @returns where `install` finds it; JSON of at most 16 KiB, without secrets, since it is written to the log
   */
  readonly capture: (session: SessionName, checkpointId: string, signal: AbortSignal) => Promise<Json>;
  /**
   * Makes the state that `reference` names the state of `session`, which is a new attempt; whatever stands there is replaced, and the
   * reference stays good. All sessions of a restore are installed, or none: where one throws, `free` is called for all that were.
   */
  readonly install: (reference: Json, session: SessionName, signal: AbortSignal) => Promise<void>;
  /** Frees the live state of a session that is over, or was not made; what was captured of it stays. */
  readonly free: (session: SessionName) => Promise<void>;
  /** Frees what is needed no more, of captures and of sessions. May run beside the capture of the next checkpoint. */
  readonly release: (needed: NeededState, signal: AbortSignal) => Promise<void>;
}
