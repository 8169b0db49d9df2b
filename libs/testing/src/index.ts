/** Brokers for tests, faults on the way to them, the suites that every implementation of a port passes, simulated participants. */
export { eventLogContract, type LogUnderTest } from "./event-log-contract.ts";
export { examine, type ExamineOptions, type Finding } from "./conformance/examine.ts";
export type { ConformanceTarget, Workload } from "./conformance/target.ts";
export { type Counterexample, explore, type Exploration, type Space } from "./explorer.ts";
export { FaultyProxy } from "./faulty-proxy.ts";
export { type JoinedProcess, joinRun } from "./joined-process.ts";
export { marksOf, withTable } from "./generated-table.ts";
export { MemoryBlobs } from "./memory-blobs.ts";
export { MemoryMessenger, type MemoryRequest } from "./memory-messenger.ts";
export {
  digest,
  type SimulatedBehaviour,
  SimulatedProcess,
  type SimulatedProcessOptions,
  type SimulatedReply,
  type SimulatedSession,
} from "./simulated-process.ts";
export { startTestBroker, TestBroker } from "./test-broker.ts";
