/**
 * The errors that cross a package or process boundary: one class, and the closed set of codes of the protocol.
 *
 * A code says what went wrong in the caller's terms, and what a consumer does with the message that met it. Anything
 * else that is thrown is a bug.
 */

/** What a consumer does with the JetStream message whose handling failed: it is done, comes again later, or never. */
export type Disposition = "ack" | "retry" | "terminate";

const dispositions = {
  invalid_request: "terminate", // malformed, unknown field, bad id: no redelivery can mend it
  unauthorized: "terminate", // no or wrong credentials at an HTTP or MCP edge
  not_found: "ack", // answered: no such checkpoint, rollout or session
  session_conflict: "ack", // answered: a different seed for a session that exists
  unavailable: "retry", // a participant or the broker cannot be reached; safe to try again
  stale_checkpoint: "ack", // answered: that id was already resumed
  checkpoint_conflict: "ack", // answered: another checkpoint is open, or the same id with another scope
  invalid_phase: "ack", // answered: not allowed now, or readiness was lost
  deadline_exceeded: "ack", // answered: the deadline passed
  stale_attempt: "ack", // answered: the attempt or its session was retired or superseded
  admission_closed: "retry", // new work while a checkpoint is open
  restart_in_scope: "ack", // answered: the scope names an episode that cannot be captured
  rollout_id_required: "terminate", // work without identity
  invalid_checkpoint_state: "ack", // answered: missing, corrupt, foreign or incomplete state; nothing was activated
} as const satisfies Record<string, Disposition>;

export type ErrorCode = keyof typeof dispositions;

function isErrorCode(name: string): name is ErrorCode {
  return Object.hasOwn(dispositions, name);
}

/** Every code, in the order of the protocol. */
export const errorCodes: readonly ErrorCode[] = Object.keys(dispositions).filter(isErrorCode);

export interface HoldpointErrorOptions {
  /** Facts for the log and the reply, such as ids and sequences. Never secrets, never payloads. */
  readonly details?: Readonly<Record<string, unknown>>;
  readonly cause?: unknown;
}

export class HoldpointError extends Error {
  override readonly name = "HoldpointError";
  readonly code: ErrorCode;
  readonly details: Readonly<Record<string, unknown>>;

  /**
   * @throws TypeError where there is no such code, which only the compiler would else refuse: what is written with it could not be
   *   read back
   */
  constructor(code: ErrorCode, message: string, { details = {}, cause }: HoldpointErrorOptions = {}) {
    super(message, cause === undefined ? {} : { cause });
    if (!isErrorCode(code)) throw new TypeError(`no error code ${String(code)}; there are ${errorCodes.join(", ")}`);
    this.code = code;
    this.details = details;
  }

  get disposition(): Disposition {
    return dispositions[this.code];
  }

  /** Whether `error` is a `HoldpointError`, of this `code` if one is given. */
  static is(error: unknown, code?: ErrorCode): error is HoldpointError {
    return error instanceof HoldpointError && (code === undefined || error.code === code);
  }
}
