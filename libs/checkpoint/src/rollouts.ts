/** What the log says of rollouts: which attempts exist, which are live, which are refused for good (L7). */
import type { Episode } from "@holdpoint/schemas";
import type { Handlers } from "./handlers.ts";
import type { CoordinatorState, Rollout } from "./state.ts";

const unknown: Rollout = { highest: -1, mark: -1, live: [] };

/** What the log says of a rollout, also of one that it has never named. */
export function rolloutOf({ rollouts }: CoordinatorState, rollout: string): Rollout {
  return rollouts.get(rollout) ?? unknown;
}

export function episodeOpened(state: CoordinatorState, { rollout, attempt }: Episode): CoordinatorState {
  const { highest, mark, live } = rolloutOf(state, rollout);
  const isNew = attempt > mark && !live.includes(attempt);
  const next = { mark, highest: Math.max(highest, attempt), live: isNew ? [...live, attempt] : live };
  state.rollouts.set(rollout, next);
  return state;
}

export function episodeEnded(state: CoordinatorState, { rollout, attempt }: Episode): CoordinatorState {
  const known = rolloutOf(state, rollout);
  const highest = Math.max(known.highest, attempt);
  state.rollouts.set(rollout, { ...known, highest, live: known.live.filter((other) => other !== attempt) });
  return state;
}

function marked(state: CoordinatorState, { rollout, attempt }: Episode): void {
  const known = rolloutOf(state, rollout);
  const mark = Math.max(known.mark, attempt);
  state.rollouts.set(rollout, { ...known, mark, live: known.live.filter((other) => other > mark) });
}

function burnt(state: CoordinatorState, { rollout, attempt }: Episode): void {
  const known = rolloutOf(state, rollout);
  state.rollouts.set(rollout, { ...known, highest: Math.max(known.highest, attempt) });
}

export const rolloutHandlers: Handlers<CoordinatorState> = {
  "rollouts.marked": (state, { rollouts }) => {
    for (const episode of rollouts) marked(state, episode);
    return state;
  },
  "rollouts.forgotten": (state, { rollouts }) => {
    for (const rollout of rollouts) state.rollouts.delete(rollout);
    return state;
  },
  /** From here the new attempts exist, also where the restore fails. */
  "restore.started": (state, { assignments }) => {
    for (const { rollout, to } of assignments) burnt(state, { rollout, attempt: to });
    return state;
  },
  /** Installed: live, as if they had been opened. Those that nobody goes on with are marked beside. */
  "restore.installed": (state, { checkpointId }) => {
    const { open } = state;
    if (open?.checkpointId !== checkpointId) return state;
    for (const { rollout, to } of open.restore?.assignments ?? []) episodeOpened(state, { rollout, attempt: to });
    return state;
  },
};

/** One above the highest attempt that the log has ever opened or refused for the rollout, and above `from` (L7). */
export function replacementOf(state: CoordinatorState, { rollout, attempt: from }: Episode): number {
  const { highest, mark } = rolloutOf(state, rollout);
  return Math.max(highest, mark, from) + 1;
}

/** The marks that were not forgotten, in the order in which the log named the rollouts first. */
export function marksOf({ rollouts }: CoordinatorState): readonly Episode[] {
  return [...rollouts].filter(([, { mark }]) => mark >= 0).map(([rollout, { mark }]) => ({ rollout, attempt: mark }));
}
