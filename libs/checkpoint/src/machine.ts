/**
 * The phases of a checkpoint and of a restore, defined once.
 *
 * Its events are the types of control events about the checkpoint that is open; whether one concerns it is decided before. The
 * fold looks the next phase up in a table that is computed from the machine when this module loads: XState itself is too slow
 * to fold a long history with.
 */
import { Phase } from "@holdpoint/schemas";
import { createMachine, transition } from "xstate";

const moves = [
  "checkpoint.opened",
  "checkpoint.stalled",
  "checkpoint.prepared",
  "checkpoint.captured",
  "checkpoint.proceeded",
  "checkpoint.committed",
  "restore.installed",
  "restore.failed",
  "checkpoint.resumed",
] as const;

/** A control event that may move the phase. */
export type PhaseMove = (typeof moves)[number];

/** Where work goes on again, and the id is stale; doubles as abort. */
const resume = { "checkpoint.resumed": "idle" } as const;

export const phaseMachine = createMachine({
  id: "checkpoint",
  initial: "idle",
  states: {
    /** Admission is open. */
    idle: { on: { "checkpoint.opened": "preparing" } },
    /** Admission closes: for a checkpoint until all are ready, also past its deadline; for a restore until all is installed. */
    preparing: { on: { ...resume, "checkpoint.prepared": "prepared", "restore.installed": "restored" } },
    /** Everyone is at a boundary and waits. */
    prepared: { on: { ...resume, "checkpoint.captured": "captured" } },
    /** The cut stands. After `checkpoint.proceeded` work goes on, and the cut stays. */
    captured: { on: { ...resume, "checkpoint.committed": "committed" } },
    /** What the cut names is durable. */
    committed: { on: resume },
    /** Replacement attempts are installed; admission is closed. */
    restored: { on: resume },
  },
});

/** The phases, in the order of the protocol. */
const phases: readonly Phase[] = Phase.options;

const table: ReadonlyMap<Phase, ReadonlyMap<string, Phase>> = new Map(phases.map((from) => [from, rowOf(from)]));

function rowOf(from: Phase): ReadonlyMap<string, Phase> {
  const snapshot = phaseMachine.resolveState({ value: from, context: {} });
  return new Map(moves.map((type) => [type, Phase.parse(transition(phaseMachine, snapshot, { type })[0].value)]));
}

/** The phase after an event of `type` about the open checkpoint; a type that moves nothing leaves it. */
export function nextPhase(phase: Phase, type: PhaseMove): Phase {
  return table.get(phase)?.get(type) ?? phase;
}

/** The table: for each phase where each event leads. Printed into the docs. */
export function phaseTable(): ReadonlyMap<Phase, ReadonlyMap<string, Phase>> {
  return table;
}
