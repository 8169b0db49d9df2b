/** Status and discover: answered from the fold, at once, without asking anybody. */
import { type Awaited, maxNamed, type Result } from "@holdpoint/schemas";
import { missingOf } from "./asks.ts";
import { hindranceOf } from "./prepare.ts";
import { participantStatuses } from "./processes.ts";
import { marksOf } from "./rollouts.ts";
import type { CoordinatorState } from "./state.ts";

export function statusOf(state: CoordinatorState): Result {
  const { phase, open, restorable, promise } = state;
  const marks = marksOf(state);
  return {
    phase,
    checkpointId: open?.checkpointId ?? null,
    participants: participantStatuses(state),
    warnings: warningsOf(state),
    restorable: [...restorable.keys()],
    marks: marks.slice(0, maxNamed),
    markCount: marks.length,
    awaited: awaitedOf(state).slice(0, maxNamed),
    ...(open !== undefined && Number.isFinite(open.leaseUntilMs) && { leaseUntilMs: open.leaseUntilMs }),
    ...open?.stalled,
    ...(promise !== undefined && { promise }),
  };
}

/** What keeps a checkpoint from being taken, and what makes the log weaker than it should be. */
function warningsOf(state: CoordinatorState): string[] {
  const warnings: string[] = [];
  const hindrance = hindranceOf(state);
  if (hindrance !== undefined) warnings.push(hindrance.message);
  if (state.promise?.syncAlways === false)
    warnings.push(`the stream acknowledges before it has written: sync_interval is not always`);
  if (state.promise?.persistMode === "async")
    warnings.push(`the stream acknowledges before it has written: its persist mode is async`);
  return warnings;
}

function awaitedOf(state: CoordinatorState): Awaited[] {
  return [...state.ops.values()].flatMap(({ command, asks }) =>
    asks.slice(-1).flatMap((current) => {
      const { operation, askedAtMs: sinceMs } = current;
      return missingOf(state, current).map(({ role, instance, worker }) => {
        return { role, instance, worker, command, operation, sinceMs };
      });
    }),
  );
}
