/** Functions of a resources server's author, as this process calls them. */
import type { ErrorCode } from "@holdpoint/errors";
import type { Episode } from "@holdpoint/schemas";
import { authored, HookFailure } from "../author-code.ts";
import type { HookAbout } from "../participant-options.ts";
import type { Desk } from "./desk.ts";
import type { SessionName } from "./external-hooks.ts";

export interface Called {
  /** As the author knows it, such as `verify.run`. */
  readonly name: string;
  /** What a bug of it is told as. */
  readonly code: ErrorCode;
  /** Once it is aborted, its reason is why the function failed. */
  readonly signal?: AbortSignal | undefined;
  /** Of which session; absent: of none. */
  readonly episode?: Episode;
  /** For which call. */
  readonly call?: string;
}

/**
 * What `call`, a function of an author's, gives.
 *
 * @throws the signal's reason; a `HoldpointError` that it may say as it was thrown; HookFailure for anything else
 */
export function hooked<Result>(
  { resources, participant }: Desk,
  called: Called,
  call: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const { name, code, signal } = called;
  const { trouble } = participant.options;
  return authored({ title: `${name} of ${resources.name}`, about: aboutOf(called), code, signal, trouble }, call);
}

/** Has external state freed that a session stood on. One that cannot be is left to the next release, and the log says so in `words`. */
export async function freed(desk: Desk, session: SessionName, words: string): Promise<void> {
  const { rollout, attempt } = session;
  const called = { name: "external.free", code: "unavailable", episode: { rollout, attempt } } as const;
  try {
    await hooked(desk, called, async () => desk.resources.external?.free({ session }));
  } catch (error) {
    if (!(error instanceof HookFailure)) desk.participant.options.trouble(words, error, aboutOf(called));
  }
}

/** What the log says of it. */
export function aboutOf({ name, episode, call }: Pick<Called, "name" | "episode" | "call">): HookAbout {
  return {
    role: "resources",
    hook: name,
    ...(episode !== undefined && { rollout: episode.rollout, attempt: episode.attempt }),
    ...(call !== undefined && { call }),
  };
}
