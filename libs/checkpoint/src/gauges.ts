/** How things stand, as numbers: read from the coordinator's state when somebody asks. */
import { roles } from "@holdpoint/schemas";
import type { ControlMeasurement } from "./observation.ts";
import { expectedOf } from "./processes.ts";
import { marksOf } from "./rollouts.ts";
import type { CoordinatorState } from "./state.ts";

/**
 * The gauges of a coordinator.
 *
 * @param nowMs the stream's time, epoch milliseconds
 * @param leads whether it is this coordinator that decides
 */
export function gaugesOf(
  state: CoordinatorState,
  { nowMs, leads }: { readonly nowMs: number; readonly leads: boolean },
): readonly ControlMeasurement[] {
  const { open, ops, queue, stale, restorable } = state;
  return [
    gauge("holdpoint_leader", leads ? 1 : 0),
    ...roles.map((role) => gauge("holdpoint_participants", expectedOf(state, [role]).length, { role })),
    gauge("holdpoint_commands", ops.size + queue.size),
    gauge("holdpoint_open_leases", open === undefined ? 0 : 1),
    ...(open !== undefined && Number.isFinite(open.leaseUntilMs)
      ? [gauge("holdpoint_lease_left_seconds", Math.max(0, open.leaseUntilMs - nowMs) / 1000)]
      : []),
    gauge("holdpoint_blockers", blockersOf(state)),
    gauge("holdpoint_restarts", open?.prepared?.restarts.length ?? 0),
    gauge("holdpoint_restorable", restorable.size),
    gauge("holdpoint_stale_ids", stale.size),
    gauge("holdpoint_retired_marks", marksOf(state).length),
  ];
}

function gauge(name: ControlMeasurement["name"], value: number, labels = {}): ControlMeasurement {
  return { name, value, labels };
}

/** What the prepare under way has been told so far, else what the last one ended with. */
function blockersOf({ ops, open }: CoordinatorState): number {
  const answers = [...ops.values()]
    .flatMap(({ asks }) => asks.filter(({ operation }) => operation === "prepare"))
    .flatMap((ask) => [...ask.answers.values()]);
  const told = answers.reduce((sum, { blockerCount }) => sum + blockerCount, 0);
  return told > 0 ? told : (open?.stalled?.blockerCount ?? 0);
}
