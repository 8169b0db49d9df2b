/** All that is known of one run once it is over: what its log says, what was executed, what was done to it, what it left. */
import type { ProcessExit } from "../run/managed-process.ts";
import type { CheckpointFacts, RestoreFacts } from "./checkpoints.ts";
import type { ExecutionAudit } from "./executions.ts";
import type { RolloutFacts } from "./rollouts.ts";
import type { PlannedKill } from "./schedule.ts";

/** Instants are epoch milliseconds of this machine, which the broker on it shares. */
export interface KillFacts {
  readonly planned: PlannedKill;
  readonly atMs: number;
  /** Calls that agents had received by then. */
  readonly calls: number;
  /** The processes that were killed, by name, with the ids that they had. */
  readonly processes: readonly { readonly name: string; readonly pid: number }[];
  /** When all of them had been started again. */
  readonly backAtMs: number;
  /** The rollouts whose activation was running, as the log says. */
  readonly hit: readonly string[];
}

export interface TrainerFacts {
  readonly version: number;
  readonly weights: readonly number[];
  /** SHA-256 over the bits of the weights. */
  readonly digest: string;
}

export interface RolloutRecord extends RolloutFacts {
  /** Digest of all files at the end; null: there was no verdict. */
  readonly treeDigest: string | null;
}

/** What a group was trained with, and the trainer's state that a checkpoint goes with. */
export interface TrainedFacts {
  readonly sequence: number;
  readonly group: string;
  readonly rollouts: readonly string[];
}

export interface SavedFacts {
  readonly sequence: number;
  readonly checkpointId: string | null;
  readonly atMs: number;
}

export interface RunRecord {
  readonly name: string;
  readonly startedAtMs: number;
  readonly endedAtMs: number;
  readonly rollouts: readonly RolloutRecord[];
  readonly checkpoints: readonly CheckpointFacts[];
  readonly restores: readonly RestoreFacts[];
  readonly trained: readonly TrainedFacts[];
  readonly saved: readonly SavedFacts[];
  readonly executions: ExecutionAudit & { readonly total: number };
  readonly trainer: TrainerFacts | null;
  readonly kills: readonly KillFacts[];
  /** Planned and never due: the run was over before. */
  readonly missedKills: readonly PlannedKill[];
  readonly exits: readonly ProcessExit[];
  /** What could not be read, or went wrong on our side, as sentences. */
  readonly problems: readonly string[];
  /** Processes, sandboxes, snapshots and mounts that were there after the end, as sentences. */
  readonly leftovers: readonly string[];
  readonly messages: number;
  readonly bytes: number;
}
