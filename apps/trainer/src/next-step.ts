/**
 * What a trainer does next: a function of the plan, its own state and what the log says, and of nothing else.
 *
 *  1. Groups are trained in the order of the plan, each once, when every rollout of it has a result that counts.
 *  2. A group is dispatched once the policy that the plan pins it to is published. So what is sampled, and what is learnt,
 *     does not depend on what ends first.
 *  3. Continuations of a restore are dispatched before anything else, and nothing else before they are taken.
 */
import { type PlannedGroup, planRun } from "@holdpoint/repair";
import type { Episode } from "@holdpoint/schemas";
import { type EpisodeResult, isTrained, type RunPlan, type TrainerState } from "./state.ts";

/** What of the log decides: see `ControlHistory`. */
interface Attempts {
  attemptOf(rollout: string): number;
  isContinued(rollout: string): boolean;
}

export interface Situation {
  readonly groups: readonly PlannedGroup[];
  readonly state: TrainerState;
  readonly attempts: Attempts;
}

export type Step =
  /** Train this group, the next of the plan, from these results. */
  | { readonly type: "train"; readonly group: PlannedGroup; readonly results: readonly EpisodeResult[] }
  /** Results are missing. */
  | { readonly type: "wait" }
  /** Every group is trained. */
  | { readonly type: "done" };

/** A rollout to be dispatched, or dispatched already. */
export interface Order extends Episode {
  readonly group: PlannedGroup;
  readonly continued: boolean;
}

/**
 * The groups of a run.
 *
 * @throws HoldpointError `invalid_request` where a number is out of range
 */
export function groupsOf({ seed, rollouts, siblings, policyLag }: RunPlan): readonly PlannedGroup[] {
  return planRun({ seed, rollouts, siblings, policyLag });
}

export function nextStep({ groups, state, attempts }: Situation): Step {
  const group = groups[state.version];
  if (group === undefined) return { type: "done" };
  const results = group.rollouts.flatMap(({ rolloutId }) => resultOf(state, attempts, rolloutId) ?? []);
  return results.length === group.rollouts.length ? { type: "train", group, results } : { type: "wait" };
}

/** Every rollout that is to run now and has no result, continuations first, then by the plan. */
export function ordersOf({ groups, state, attempts }: Situation): readonly Order[] {
  const orders = groups
    .filter(({ policyVersion }, index) => index >= state.version && policyVersion <= state.version)
    .flatMap((group) => group.rollouts.map(({ rolloutId }) => orderOf(group, rolloutId, attempts)))
    .filter(({ rollout }) => resultOf(state, attempts, rollout) === undefined);
  return [...orders.filter(({ continued }) => continued), ...orders.filter(({ continued }) => !continued)];
}

/** Of `orders`, in their order, those to send now: nothing new before every continuation was taken. */
export function sendable(orders: readonly Order[], isTaken: (episode: Episode) => boolean): readonly Order[] {
  const waiting = orders.filter((order) => order.continued && !isTaken(order));
  return waiting.length > 0 ? waiting : orders.filter((order) => !isTaken(order));
}

/** The result of the rollout's attempt that counts. */
function resultOf({ pending }: TrainerState, attempts: Attempts, rollout: string): EpisodeResult | undefined {
  const attempt = attempts.attemptOf(rollout);
  return pending.find((result) => result.rollout === rollout && result.attempt === attempt);
}

function orderOf(group: PlannedGroup, rollout: string, attempts: Attempts): Order {
  return { rollout, attempt: attempts.attemptOf(rollout), continued: attempts.isContinued(rollout), group };
}

/** What is due at an instant, in milliseconds of one clock. */
export interface CheckpointClock {
  readonly nowMs: number;
  /** When the last one ended, whatever became of it, or the process started. */
  readonly lastAtMs: number;
  /** 0: never. */
  readonly everyMs: number;
  /** Whether a group was trained since. */
  readonly trained: boolean;
  /** Whether anything was said in the stream since. */
  readonly moved: boolean;
  /** Whether an episode is on its way. */
  readonly running: boolean;
}

/** Whether a checkpoint is due: after each group, and by time where there was progress and episodes are on their way. */
export function checkpointDue(situation: Situation, clock: CheckpointClock): boolean {
  if (clock.everyMs === 0 || nextStep(situation).type === "done") return false;
  if (clock.trained) return true;
  return clock.moved && clock.running && clock.nowMs - clock.lastAtMs >= clock.everyMs;
}

/** What the log says of a rollout when a trainer goes back to a checkpoint. */
export interface KnownRollout {
  /** The highest attempt that was ever opened. */
  readonly highest: number;
  /** The results of it, of all attempts. */
  readonly results: readonly EpisodeResult[];
}

/** What is to be given up, and what to be continued, before the trainer goes on from `state`. */
export interface WayBack {
  /** With the highest attempt of each. */
  readonly retired: readonly Episode[];
  /** Rollouts. */
  readonly restored: readonly string[];
}

/**
 * The way back to a checkpoint that holds `scope` and was saved with `state`.
 *
 * A rollout that is trained in these weights, or has a result that stands, is left alone: its result is in the stream, and
 * came from a policy that these weights have. Of the others what the checkpoint holds is continued, and everything else runs
 * again; what still ran of them is given up first.
 */
export function wayBack(
  { groups, state, attempts }: Situation,
  scope: readonly Episode[],
  known: ReadonlyMap<string, KnownRollout>,
): WayBack {
  const held = new Set(scope.map(({ rollout }) => rollout));
  const undone = groups
    .flatMap(({ policyVersion, rollouts }) => rollouts.map(({ rolloutId }) => ({ policyVersion, rollout: rolloutId })))
    .filter(({ rollout, policyVersion }) => {
      if (isTrained(state, rollout) || resultOf(state, attempts, rollout) !== undefined) return false;
      const attempt = attempts.attemptOf(rollout);
      const ended = known.get(rollout)?.results.some((result) => result.attempt === attempt) ?? false;
      return !ended || policyVersion > state.version;
    });
  return {
    restored: undone.filter(({ rollout }) => held.has(rollout)).map(({ rollout }) => rollout),
    retired: undone.flatMap(({ rollout }) => {
      const attempt = attempts.attemptOf(rollout);
      const installed = attempts.isContinued(rollout) ? attempt : -1; // lives before it is dispatched
      const highest = Math.max(known.get(rollout)?.highest ?? -1, installed);
      return highest < attempt ? [] : [{ rollout, attempt: highest }];
    }),
  };
}
