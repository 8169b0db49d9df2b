/** Whether a saved state belongs to the run that goes on from it. */
import { HoldpointError } from "@holdpoint/errors";
import type { EventLog } from "@holdpoint/eventsourcing";
import { sha256 } from "@holdpoint/participant";
import type { PlannedGroup } from "@holdpoint/repair";
import type { RunRequest } from "@holdpoint/schemas";
import type { RunView } from "./run-view.ts";
import type { RunPlan, TrainerState } from "./state.ts";

/** @throws HoldpointError `invalid_request` where it was saved under another plan */
export function requireSamePlan(found: RunPlan, wanted: RunPlan): void {
  const faults = Object.entries(wanted).flatMap(([name, value]) => {
    const is = Object.entries(found).find(([other]) => other === name)?.[1];
    return is === value ? [] : [`${name} is ${is}, expected ${value}`];
  });
  if (faults.length === 0) return;
  const advice =
    "give each run a HOLDPOINT_STATE_DIR of its own, or start with the settings of the run that it belongs to";
  throw new HoldpointError("invalid_request", `the saved state is of another run: ${faults.join("; ")}; ${advice}`);
}

/** What the environment is given to work on: its JSON text is what its digest is made of. */
export function taskJson({ task }: PlannedGroup, seed: number): RunRequest["task"] {
  return { task, seed };
}

/**
 * The log tells of rollouts by their ids alone, and every plan begins with the same: results of other tasks must not be trained.
 *
 * @throws HoldpointError `invalid_request` where a rollout of the plan was opened with another task than the plan has
 */
export function requireSameTasks(
  view: Pick<RunView, "taskOf">,
  groups: readonly PlannedGroup[],
  { seed }: Pick<RunPlan, "seed">,
): void {
  const foreign = groups.flatMap((group) => {
    const digest = sha256(JSON.stringify(taskJson(group, seed)));
    return group.rollouts
      .map(({ rolloutId }) => rolloutId)
      .filter((rollout) => (view.taskOf(rollout) ?? digest) !== digest);
  });
  if (foreign.length === 0) return;
  const named = foreign.slice(0, 10).join(", ");
  const words = `${foreign.length} rollouts of this plan were opened in this run with other tasks (${named}): it is the run of another plan`;
  throw new HoldpointError("invalid_request", `${words}; start with its settings, or choose another HOLDPOINT_RUN`);
}

/** @throws HoldpointError `invalid_checkpoint_state` where the stream is not the one that the state was saved of (L15) */
export async function requireSameStream(log: EventLog, { cursor, anchor }: TrainerState): Promise<void> {
  if (anchor === null) return;
  const found = await log.get(cursor).catch((error: unknown) => {
    if (HoldpointError.is(error, "not_found")) return undefined;
    throw error;
  });
  if (found !== undefined && sha256(new TextDecoder().decode(found.body)) === anchor) return;
  throw new HoldpointError(
    "invalid_checkpoint_state",
    `${log.stream} has another message at ${cursor} than when the trainer's state was saved: it was damaged, rolled back or made anew`,
    { details: { cursor } },
  );
}
