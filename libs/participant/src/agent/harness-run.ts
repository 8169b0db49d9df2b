/**
 * One activation of an opaque agent: launches its harness or finds it again, has it stand while a checkpoint is open, and waits for its
 * end.
 *
 * 1. A harness is in the log before it is waited for. A process after this one looks for it there, and never launches a second one
 *    beside it.
 * 2. The session is parked only while the harness stands: it stands before `session.parked`, and goes on after `session.unparked`.
 * 3. A harness is stopped when its session is retired or closed, not when this process ends.
 */
import { HoldpointError } from "@holdpoint/errors";
import type { Mode } from "@holdpoint/schemas";
import { ours } from "../author-code.ts";
import type { ActivationContext } from "./activation.ts";
import { checkHarness, type Harness } from "./harness.ts";

export interface HarnessHooks {
  readonly name: string;
  readonly launch: () => Promise<Harness>;
  readonly find: ((handle: string) => Promise<Harness | undefined>) | undefined;
}

export async function runHarness(hooks: HarnessHooks, context: ActivationContext): Promise<string> {
  const { signal } = context;
  const found = await findHarness(hooks, context);
  const harness = found ?? (await launchHarness(hooks, context));
  try {
    if (found !== undefined) await goOn(found, context);
    return await attend(harness, context);
  } catch (error) {
    if (signal.aborted) await harness.stop();
    throw error;
  }
}

/**
 * The harness that the log names; undefined where none was launched, or where an earlier attempt's was whose state is there. One of
 * this attempt that is gone may have done something since its state was exported: another one would do it again (L3).
 */
async function findHarness(
  { name, find }: HarnessHooks,
  { agent, episode, state }: ActivationContext,
): Promise<Harness | undefined> {
  const { harness, continuation } = state;
  if (harness === null) return undefined;
  // An earlier attempt's: what it has done since its state was exported was given up with that attempt.
  if (harness.handle === null && continuation !== null) return undefined;
  const found = harness.handle === null ? undefined : await find?.(harness.handle);
  if (found !== undefined) {
    accept(`find of ${name}`, agent.spec.mode, found);
    return found;
  }
  const { rollout, attempt } = episode;
  const what = `the harness of ${rollout}, attempt ${attempt}, is gone`;
  const why = continuation === null ? `${what}, and its state was not exported` : `${what}, with what it did since`;
  if (state.restart === null)
    await ours(() => agent.record({ type: "session.restart_marked", data: { ...episode, why } }));
  throw new HoldpointError("invalid_checkpoint_state", `${why}: start the rollout over`, { details: { ...episode } });
}

/** How it ends is looked at when it is attended to: until then a failure of it is nobody's. */
function accept(hook: string, mode: Mode, harness: Harness): void {
  checkHarness(hook, mode, harness);
  harness.done.catch(() => {});
}

async function launchHarness({ name, launch }: HarnessHooks, context: ActivationContext): Promise<Harness> {
  const { agent, episode, signal } = context;
  const harness = await launch();
  accept(`launch of ${name}`, agent.spec.mode, harness);
  try {
    signal.throwIfAborted();
    await ours(() => agent.record({ type: "harness.launched", data: { ...episode, handle: harness.handle } }));
  } catch (error) {
    await harness.stop(); // nobody would find it
    throw error;
  }
  return harness;
}

/** It may stand since the process before this one had it stand: it does where its session is parked. */
async function goOn(harness: Harness, context: ActivationContext): Promise<void> {
  const { agent, episode, park } = context;
  if (park.isRaised) return;
  if (agent.sessions.get(episode)?.status.work === "parked") await stand(harness, context);
  await harness.continue();
}

async function attend(harness: Harness, context: ActivationContext): Promise<string> {
  const { signal, park } = context;
  const cancelled = rejected(signal);
  const ended = Promise.race([harness.done, cancelled]);
  const output = ended.then((text) => ({ text }));
  for (;;) {
    const raised = await Promise.race([output, park.raised]);
    if (raised !== undefined) return raised.text;
    const paused = await Promise.race([output, harness.pause()]);
    if (paused !== undefined) return paused.text;
    await stand(harness, context);
    await harness.continue();
  }
}

/** Returns at once, unless a checkpoint is open. */
function stand(harness: Harness, { agent, work }: ActivationContext): Promise<void> {
  if (agent.spec.mode !== "exported") return ours(() => work.boundary());
  return ours(() => work.boundary(() => harness.state?.() ?? null));
}

/** Rejects with the signal's reason when it is aborted. */
function rejected(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const abort = () => reject(signal.reason instanceof Error ? signal.reason : new Error(String(signal.reason)));
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
  });
}
