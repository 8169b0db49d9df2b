/** The demo: the same seeded workload twice, undisturbed and under chaos, and whether both ended the same. */
import { planRun } from "@holdpoint/repair";
import { join } from "node:path";
import { makeWorkFolder, removeWorkFolder } from "../run/work-folder.ts";
import { type Summary, summarize } from "../report/summary.ts";
import { performRun } from "./perform-run.ts";
import { type ChaosLevel, scheduleKills } from "./schedule.ts";
import type { View } from "./view.ts";

export interface DemoOptions {
  /** An integer of [0, 2^32). */
  readonly seed: number;
  /** A positive multiple of the four siblings of each task. */
  readonly rollouts: number;
  readonly level: ChaosLevel;
  /** The work folder stays. It also stays where the runs do not end the same. */
  readonly keep: boolean;
  readonly view: View;
  readonly signal: AbortSignal;
}

export interface DemoResult {
  readonly summary: Summary;
  /** Where streams, states and logs are; null: they are gone. */
  readonly folder: string | null;
}

/** While there is progress. */
const checkpointEveryMs = 3_000;
/** How long one run may take, for each of its rollouts and beside. */
const timeout = { baseMs: 120_000, rolloutMs: 15_000 } as const;

/**
 * Performs the demo. Nothing of it is left running when this returns or throws.
 *
 * @throws HoldpointError `invalid_request` where a number is out of range, `unavailable` where the broker or a process cannot be
 *   started, `deadline_exceeded` where a run does not end; the signal's reason where it is aborted
 */
export async function runDemo(options: DemoOptions): Promise<DemoResult> {
  const { seed, rollouts, level, keep, view, signal } = options;
  const pinned = pinnedBy(seed, rollouts);
  const folder = await makeWorkFolder("demo");
  let stays = true;
  try {
    const common = { seed, rollouts, signal, view, timeoutMs: timeout.baseMs + rollouts * timeout.rolloutMs };
    view.begin("calm", rollouts);
    const calmly = { ...common, name: "calm", folder: join(folder, "calm"), plan: [], checkpointEveryMs: 0 };
    const calm = await performRun(calmly);
    const calls = calm.rollouts.reduce((total, rollout) => total + rollout.calls.length, 0);
    view.begin("chaos", rollouts);
    const plan = scheduleKills({ seed, level, calls });
    const chaos = await performRun({
      ...common,
      name: "chaos",
      folder: join(folder, "chaos"),
      plan,
      checkpointEveryMs,
    });
    const summary = summarize({ calm, chaos, level, pinned }, seed);
    stays = keep || !summary.equal;
    return { summary, folder: stays ? folder : null };
  } catch (error) {
    stays = keep || !signal.aborted;
    if (stays) view.tell(`what the processes left is in ${folder}`);
    throw error;
  } finally {
    view.end();
    if (!stays) await removeWorkFolder(folder);
  }
}

/** The policy version that the plan pins for each rollout. */
function pinnedBy(seed: number, rollouts: number): ReadonlyMap<string, number> {
  const groups = planRun({ seed, rollouts });
  const pinned = groups.flatMap((group) =>
    group.rollouts.map(({ rolloutId }) => [rolloutId, group.policyVersion] as const),
  );
  return new Map(pinned);
}
