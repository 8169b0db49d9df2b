/** The fold of the open checkpoint or restore, of stale ids, and of what can be restored. */
import type { DataOf, Handlers, Place } from "./handlers.ts";
import { nextPhase, type PhaseMove } from "./machine.ts";
import type { CapturedSession, CoordinatorState, Open } from "./state.ts";

/** The state after an event about the open checkpoint: its phase by the machine's table, and what else `change` says. */
function moved(state: CoordinatorState, type: PhaseMove, id: string, change: (open: Open) => Open): CoordinatorState {
  if (state.open?.checkpointId !== id) return state;
  return { ...state, phase: nextPhase(state.phase, type), open: change(state.open) };
}

function opened(
  state: CoordinatorState,
  { checkpointId, kind }: DataOf<"checkpoint.opened">,
  { timeMs: openedAtMs }: Place,
): CoordinatorState {
  const open: Open = {
    checkpointId,
    kind,
    openedAtMs,
    prepared: undefined,
    restarts: [],
    stalled: undefined,
    captured: undefined,
    proceeded: false,
    leaseUntilMs: Number.POSITIVE_INFINITY,
    expired: false,
    restorableAtMs: undefined,
    restore: undefined,
    successes: new Map(),
  };
  return { ...state, phase: nextPhase(state.phase, "checkpoint.opened"), open };
}

function captured(state: CoordinatorState, data: DataOf<"checkpoint.captured">, place: Place): CoordinatorState {
  const { command, checkpointId, scope, holdings } = data;
  const sessions = capturedSessions(state, command);
  state.captures.clear();
  const cut = { sequence: place.sequence, atMs: place.timeMs, scope, holdings, sessions };
  return moved(state, "checkpoint.captured", checkpointId, (open) => ({ ...open, captured: cut }));
}

/** What the last ask to capture of `command` was answered with, by process. */
function capturedSessions(state: CoordinatorState, command: number): ReadonlyMap<string, readonly CapturedSession[]> {
  const ask = state.ops.get(command)?.asks.findLast(({ operation }) => operation === "capture");
  return new Map([...(ask?.answers ?? [])].map(([key, answer]) => [key, answer.captured]));
}

function committed(state: CoordinatorState, data: DataOf<"checkpoint.committed">, place: Place): CoordinatorState {
  const { checkpointId, cut, anchor, scope, holdings } = data;
  state.restorable.set(checkpointId, { checkpointId, cut, anchor, scope, holdings });
  return moved(state, "checkpoint.committed", checkpointId, (open) => ({ ...open, restorableAtMs: place.timeMs }));
}

/** The id is stale for ever; what was open under it is not any more. Only the first resume counts for the order. */
function resumed(state: CoordinatorState, { checkpointId }: DataOf<"checkpoint.resumed">): CoordinatorState {
  const lastResumed = state.stale.has(checkpointId) ? state.lastResumed : checkpointId;
  state.stale.add(checkpointId);
  if (state.open?.checkpointId !== checkpointId) return { ...state, lastResumed };
  return { ...state, lastResumed, phase: nextPhase(state.phase, "checkpoint.resumed"), open: undefined };
}

/** A process serves again by itself: what is open is over, as soon as the leader has resumed it for everybody. */
export function leaseExpired(state: CoordinatorState, checkpointId: string): CoordinatorState {
  return state.open?.checkpointId === checkpointId ? { ...state, open: { ...state.open, expired: true } } : state;
}

export const checkpointHandlers: Handlers<CoordinatorState> = {
  "checkpoint.opened": opened,
  "checkpoint.prepared": (state, { checkpointId, restarts, continued }, { timeMs: atMs }) =>
    moved(state, "checkpoint.prepared", checkpointId, (open) => {
      return { ...open, prepared: { atMs, restarts, continued }, stalled: undefined };
    }),
  "checkpoint.captured": captured,
  "checkpoint.proceeded": (state, { checkpointId }) =>
    moved(state, "checkpoint.proceeded", checkpointId, (open) => ({ ...open, proceeded: true })),
  "checkpoint.committed": committed,
  "checkpoint.resumed": resumed,
  "lease.moved": (state, { checkpointId, leaseMs }, { timeMs }) =>
    state.open?.checkpointId === checkpointId
      ? { ...state, open: { ...state.open, leaseUntilMs: timeMs + leaseMs } }
      : state,
  "restore.started": (state, { checkpointId, source, assignments, adoptions = [] }) =>
    state.open?.checkpointId === checkpointId
      ? { ...state, open: { ...state.open, restore: { source, assignments, adoptions } } }
      : state,
  "restore.installed": (state, { checkpointId }) => moved(state, "restore.installed", checkpointId, (open) => open),
  "checkpoint.releasing": (state, { dropped }) => {
    for (const checkpointId of dropped) state.restorable.delete(checkpointId);
    return state;
  },
};

/** The rollouts that a checkpoint which can be restored names, each with such a checkpoint: they can still run again. */
export function namedRollouts({ restorable }: CoordinatorState): ReadonlyMap<string, string> {
  const named = new Map<string, string>();
  for (const { checkpointId, scope } of restorable.values()) {
    for (const { rollout } of scope) named.set(rollout, checkpointId);
  }
  return named;
}
