export { mapBounded } from "./bounded.ts";
export {
  Checkpointer,
  type CheckpointerOptions,
  type ForkOrder,
  type GarbageReport,
  type IsReferenced,
  openCheckpointer,
  type SnapshotOrder,
} from "./checkpointer.ts";
export { dirProvider } from "./dir-provider.ts";
export {
  type Capabilities,
  type ExecRequest,
  type ExecResult,
  type ListedFile,
  type SandboxProvider,
  type SandboxStatus,
  SnapshotReference,
  type StoredSnapshot,
  type TakenSnapshot,
} from "./provider.ts";
export {
  emptyIndex,
  foldSnapshots,
  isSnapshotEvent,
  type SnapshotEvent,
  type SnapshotIndex,
  type SnapshotRecord,
} from "./snapshot-index.ts";
export { claimStateDir, type Owner } from "./state-dir.ts";
export { treeDigest } from "./tree.ts";
