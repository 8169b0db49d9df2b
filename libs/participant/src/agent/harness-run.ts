/**
 * One activation of an opaque agent: launches its harness or finds it again, has it stand while a checkpoint is open, and waits for its
 * end.
 *
 * 1. A harness is in the log before it is waited for. A process after this one looks for it there, and never launches a second one
 *    beside it.
 * 2. The session is parked only while the harness stands: it stands before `session.parked`, and goes on after `session.unparked`.
 * 3. A harness is stopped, once, when its activation is over, for whatever reason; not when this process ends. One that does not stop
 *    in time is not waited for.
 */
import { HoldpointError } from "@holdpoint/errors";
import { ours } from "../author-code.ts";
import type { ActivationContext } from "./activation.ts";
import { checkHarness, type Harness, isStoppable } from "./harness.ts";
import { untilAborted } from "../until-aborted.ts";

export interface HarnessHooks {
  readonly name: string;
  readonly launch: () => Promise<Harness>;
  readonly find: ((handle: string) => Promise<Harness | undefined>) | undefined;
}

export async function runHarness(hooks: HarnessHooks, context: ActivationContext): Promise<string> {
  const found = await findHarness(hooks, context);
  const harness = found ?? (await launchHarness(hooks, context));
  try {
    if (found !== undefined) await goOn(found, context);
    return await attend(harness, context);
  } finally {
    await stop(harness, context);
  }
}

/** What comes of it ends nothing: the log of this process says what was not stopped. */
async function stop(harness: Pick<Harness, "stop">, { agent, episode, graceMs }: ActivationContext): Promise<void> {
  const { rollout, attempt } = episode;
  const late = new AbortController();
  const why = new HoldpointError("deadline_exceeded", `it did not stop within ${graceMs} ms`);
  const timer = setTimeout(() => late.abort(why), graceMs);
  try {
    await untilAborted(harness.stop(), late.signal);
  } catch (error) {
    const about = { role: "agent", hook: "stop", rollout, attempt } as const;
    agent.options.trouble(`the harness of ${rollout}, attempt ${attempt}, was not stopped`, error, about);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * The harness that the log names; undefined where none was launched, or where an earlier attempt's was whose state is there. One of
 * this attempt that is gone may have done something since its state was exported: another one would do it again (L3).
 */
async function findHarness({ name, find }: HarnessHooks, context: ActivationContext): Promise<Harness | undefined> {
  const { agent, episode, state } = context;
  const { harness, continuation } = state;
  if (harness === null) return undefined;
  // An earlier attempt's: what it has done since its state was exported was given up with that attempt.
  if (harness.handle === null && continuation !== null) return undefined;
  const found = harness.handle === null ? undefined : await find?.(harness.handle);
  if (found !== undefined) {
    await accept(`find of ${name}`, found, context);
    return found;
  }
  const { rollout, attempt } = episode;
  const what = `the harness of ${rollout}, attempt ${attempt}, is gone`;
  const why = continuation === null ? `${what}, and its state was not exported` : `${what}, with what it did since`;
  if (state.restart === null)
    await ours(() => agent.record({ type: "session.restart_marked", data: { ...episode, why } }));
  throw new HoldpointError("invalid_checkpoint_state", `${why}: start the rollout over`, { details: { ...episode } });
}

/** One that is refused is stopped, where it can be: nobody else would. How one ends is nobody's failure until it is attended to. */
async function accept(hook: string, harness: Harness, context: ActivationContext): Promise<void> {
  try {
    checkHarness(hook, context.agent.spec.mode, harness);
    harness.done.catch(() => {});
  } catch (error) {
    if (isStoppable(harness)) {
      void Promise.resolve(harness.done).catch(() => {});
      await stop(harness, context);
    }
    throw error;
  }
}

async function launchHarness({ name, launch }: HarnessHooks, context: ActivationContext): Promise<Harness> {
  const { agent, episode, signal } = context;
  const harness = await launch();
  await accept(`launch of ${name}`, harness, context);
  try {
    signal.throwIfAborted();
    await ours(() => agent.record({ type: "harness.launched", data: { ...episode, handle: harness.handle } }));
  } catch (error) {
    await stop(harness, context); // nobody would find it
    throw error;
  }
  return harness;
}

/** It may stand since the process before this one had it stand: it does where its session is parked. */
async function goOn(harness: Harness, context: ActivationContext): Promise<void> {
  const { agent, episode, park } = context;
  if (park.isRaised) return;
  if (agent.sessions.get(episode)?.status.work === "parked") await stand(harness, context);
  await Promise.race([harness.continue(), rejected(context.signal)]);
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
    await Promise.race([harness.continue(), cancelled]);
  }
}

/** Returns at once, unless a checkpoint is open. */
function stand(harness: Harness, { agent, work }: ActivationContext): Promise<void> {
  if (agent.spec.mode !== "exported") return ours(() => work.stand());
  return ours(() => work.boundary(() => harness.state?.() ?? null, "state"));
}

/** Rejects with the signal's reason when it is aborted. */
function rejected(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const abort = () => reject(signal.reason instanceof Error ? signal.reason : new Error(String(signal.reason)));
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
  });
}
