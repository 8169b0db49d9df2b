/** How functions of an author's fail: what they throw may hold secrets, and does not leave the process. */
import { HoldpointError } from "@holdpoint/errors";
import type { ErrorCode } from "@holdpoint/errors";
import type { Desk } from "./desk.ts";

interface Called {
  /** As the author knows it, such as `verify.run`. */
  readonly name: string;
  /** What anything but a `HoldpointError` is told as. */
  readonly code: ErrorCode;
  /** Once it is aborted, its reason is why the function failed. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * What `call`, a function of an author's, gives.
 *
 * @throws the signal's reason; a `HoldpointError` as it was thrown; for anything else one of `code`, in words of ours
 */
export async function hooked<Result>(
  desk: Desk,
  { name, code, signal }: Called,
  call: () => Promise<Result>,
): Promise<Result> {
  try {
    return await call();
  } catch (error) {
    signal?.throwIfAborted();
    if (HoldpointError.is(error)) throw error;
    throw new HoldpointError(code, threw(desk, name, error), { cause: error });
  }
}

/** Tells the log of this process what was thrown. @returns the words for everybody else */
export function threw({ resources, participant }: Desk, name: string, error: unknown): string {
  const words = `${name} of ${resources.name} threw`;
  participant.options.trouble(words, error);
  return `${words}: the log of its process says what`;
}
