/**
 * Checkpoints as pure decisions: what the coordinator asks, what stands, what a participant may do meanwhile.
 *
 * The coordinator's loop is `advance` for each message of the stream, and `react` until it waits. A participant's is `evolveGate`.
 */
export { graceMs } from "./asks.ts";
export { cleanUpMs } from "./commands.ts";
export { isLeader, react } from "./coordinator.ts";
export type { Context, Decision, Planned } from "./decision.ts";
export { anchorOf, type Author, draftsOf, maxMessageBytes } from "./drafts.ts";
export { advance, foldVersion } from "./evolve.ts";
export { maxCommandBytes } from "./input.ts";
export { gaugesOf } from "./gauges.ts";
export { defaultLeaseGraceMs } from "./lease.ts";
export { phaseMachine, phaseTable } from "./machine.ts";
export {
  type ControlMeasurement,
  controlMeasures,
  type Measure,
  type Measurement,
  type Observed,
  spanAttributes,
  spanKinds,
  type SpanRecord,
  type SpanReference,
} from "./observation.ts";
export { observe } from "./observe.ts";
export {
  answered,
  type Ask,
  type Closure,
  evolveGate,
  type GivenAnswer,
  initialGate,
  isRefused,
  isStale,
  leaseEndOf,
  leaseExpired,
  type Obligation,
  obligationsOf,
  type ParticipantGate,
} from "./participant.ts";
export { maxProcesses } from "./prepare.ts";
export { operationTable } from "./operation-table.ts";
export { type CoordinatorState, initialState } from "./state.ts";
