/** Which operation is allowed in which phase, and the phase that its success leads to: what the fences and the machine say together. */
import { type Operation, operations, Phase } from "@holdpoint/schemas";
import { allowedIn } from "./fences.ts";
import { nextPhase, type PhaseMove } from "./machine.ts";

/** The events about what is open that a success of each operation appends, in order; of those not named, none. */
const effects: { readonly [O in Operation]?: readonly PhaseMove[] } = {
  prepare: ["checkpoint.opened", "checkpoint.prepared"],
  capture: ["checkpoint.captured"],
  proceed: ["checkpoint.proceeded"],
  commit: ["checkpoint.captured", "checkpoint.committed"],
  checkpoint: [
    "checkpoint.opened",
    "checkpoint.prepared",
    "checkpoint.captured",
    "checkpoint.proceeded",
    "checkpoint.committed",
    "checkpoint.resumed",
  ],
  resume: ["checkpoint.resumed"],
  restore: ["checkpoint.opened", "restore.installed"],
};

/** For each operation the phases in which it is allowed for the first time, each with the phase after its success. */
export function operationTable(): ReadonlyMap<Operation, ReadonlyMap<Phase, Phase>> {
  return new Map(operations.map((operation) => [operation, rowOf(operation)]));
}

function rowOf(operation: Operation): ReadonlyMap<Phase, Phase> {
  const phases = Phase.options.filter((phase) => allowedIn(operation).includes(phase));
  return new Map(phases.map((from) => [from, (effects[operation] ?? []).reduce(nextPhase, from)]));
}
