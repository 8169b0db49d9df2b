/**
 * Where functions of an author's run: what they throw, also late and where nobody catches it, ends the piece of work that they do, and
 * nothing beside it.
 *
 * 1. What they throw may hold secrets. It goes to the log of this process, once, and others are told in words of ours (F10).
 * 2. They may refuse with a `HoldpointError` of a code that is theirs to say. The other codes are what this SDK says of episodes and
 *    checkpoints: one of those in their mouth is a bug like any other.
 * 3. A piece of work that is over fails no more: what it leaves behind is logged.
 * 4. Code of ours that they call runs outside of their piece: what it begins is shared, and fails as ours.
 */
import { type ErrorCode, HoldpointError } from "@holdpoint/errors";
import { AsyncLocalStorage } from "node:async_hooks";
import type { HookAbout, ParticipantOptions } from "./participant-options.ts";

/** The codes that a function of an author's may say with a `HoldpointError`. */
const authorCodes = [
  "invalid_request",
  "not_found",
  "unauthorized",
  "unavailable",
  "deadline_exceeded",
  "invalid_checkpoint_state",
] as const satisfies readonly ErrorCode[];

const sayable: ReadonlySet<ErrorCode> = new Set(authorCodes);

/** A bug of an author's function: it has been logged, so its message says only whose it is, and it has no cause. */
export class HookFailure extends HoldpointError {}

export interface Piece {
  /** What runs, and of which definition, such as `activate of solver`. */
  readonly title: string;
  readonly about: HookAbout;
  /** Once it is aborted its reason is why the piece failed. */
  readonly signal?: AbortSignal | undefined;
  /** The log of this process. */
  readonly trouble: ParticipantOptions["trouble"];
}

export interface JudgedPiece extends Piece {
  /** What others are told of a bug that it throws. One that nobody caught is always `invalid_request`. */
  readonly code: ErrorCode;
  /** What it did then, for messages. Default: `threw`. */
  readonly failed?: string;
}

interface Running {
  stray(error: unknown): void;
}

const running = new AsyncLocalStorage<Running | undefined>();
/** What code of ours has thrown into an author's. */
const thrownByUs = new WeakSet<HoldpointError>();

/** Whether an error that came out of an author's function may go out as it is. */
export function isBelieved(error: unknown): error is HoldpointError {
  return HoldpointError.is(error) && (sayable.has(error.code) || thrownByUs.has(error));
}

/**
 * What `call`, an author's function, gives.
 *
 * @param call is given a signal that is aborted with the piece's, and when the piece has failed by what nobody caught
 * @throws the signal's reason; a `HoldpointError` that it may say as it was thrown; HookFailure for anything else
 */
export async function authored<Result>(
  piece: JudgedPiece,
  call: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  try {
    return await contained(piece, call);
  } catch (error) {
    piece.signal?.throwIfAborted();
    if (isBelieved(error)) throw error;
    const { title, about, code, failed = "threw", trouble } = piece;
    const words = `${title} ${failed}`;
    trouble(
      `${placeOf(about)}${words}${HoldpointError.is(error) ? ` ${error.code}, not its to say` : ""}`,
      error,
      about,
    );
    throw new HookFailure(code, `${words}: the log of its process says what`);
  }
}

/**
 * As `authored`, for who judges by itself what `call` throws.
 *
 * @throws HookFailure `invalid_request` where it left a failure that nobody caught; else what `call` throws
 */
export async function contained<Result>(piece: Piece, call: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
  const { title, about, signal, trouble } = piece;
  const { promise: strayed, reject } = Promise.withResolvers<never>();
  const own = new AbortController();
  let isOver = false;
  const stray = (error: unknown) => {
    const words = `${title} left a failure that nobody caught`;
    trouble(placeOf(about) + words, error, about);
    if (isOver) return;
    const failure = new HookFailure("invalid_request", `${words}: the log of its process says which`);
    reject(failure);
    running.run({ stray }, () => own.abort(failure));
  };
  // Listeners of the author's are called in the piece that they belong to.
  const abort = () => running.run({ stray }, () => own.abort(signal?.reason));
  signal?.addEventListener("abort", abort, { once: true });
  if (signal?.aborted === true) abort();
  try {
    return await Promise.race([running.run({ stray }, async () => call(own.signal)), strayed]);
  } finally {
    isOver = true;
    signal?.removeEventListener("abort", abort);
  }
}

/** Of what episode a line of the log is, for whoever reads its words alone. */
function placeOf({ rollout, attempt }: HookAbout): string {
  return rollout === undefined ? "" : `${rollout}/${attempt}: `;
}

/** Does `step`, code of ours that an author's function calls. One that it does not wait for fails nobody by itself. */
export function ours<Result>(step: () => Promise<Result>): Promise<Result> {
  const given = running.run(undefined, step);
  given.catch((error: unknown) => {
    if (HoldpointError.is(error)) thrownByUs.add(error);
  });
  return given;
}

/**
 * From here on what nobody catches in this process ends the author's piece of work that it belongs to.
 *
 * @param unowned told of what belongs to none: a bug of ours, after which a process cannot go on
 * @returns what ends that
 */
export function containStrays(unowned: (error: unknown) => void): () => void {
  const stray = (error: unknown) => {
    const piece = running.getStore();
    if (piece === undefined) unowned(error);
    else piece.stray(error);
  };
  process.on("unhandledRejection", stray);
  process.on("uncaughtException", stray);
  return () => {
    process.off("unhandledRejection", stray);
    process.off("uncaughtException", stray);
  };
}
