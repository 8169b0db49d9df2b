/** What a participant's process is made of, and what its role serves. */
import type { BlobStore, EventLog, SnapshotStore } from "@holdpoint/eventsourcing";
import type { Role } from "@holdpoint/schemas";
import type { Messenger } from "./messenger.ts";
import type { RoleHooks } from "./role-spec.ts";
import type { AnyMethod } from "./rpc-server.ts";

export interface ParticipantOptions {
  readonly run: string;
  readonly instance: string;
  readonly worker: string;
  /** Where it serves outside NATS, such as a model's URL. */
  readonly endpoint?: string | undefined;
  /** Unique for each life of the process. */
  readonly incarnation: string;
  readonly log: EventLog;
  readonly blobs: BlobStore;
  /** Where snapshots of its fold rest; absent: it is folded from the start each time. */
  readonly snapshots?: SnapshotStore | undefined;
  readonly messenger: Messenger;
  /** The local clock, epoch milliseconds. */
  readonly clock: () => number;
  /** Called once, when a successor of this process has taken over: nothing it does counts any more. */
  readonly fenced: () => void;
  /** Called when it can no longer append or obey, such as on a damaged stream: only a successor can go on. */
  readonly failed?: ((error: unknown) => void) | undefined;
  /** Something went wrong that nobody asked about; `about` names the checkpoint and the command that it touches, or the hook. */
  readonly trouble: (what: string, error?: unknown, about?: TroubleAbout | HookAbout) => void;
}

export interface TroubleAbout {
  readonly checkpointId: string | null;
  readonly command?: number;
}

/** Which function of an author's failed, and at what. */
export interface HookAbout {
  readonly role: Role;
  /** As its author knows it, such as `verify.run`. */
  readonly hook: string;
  /** Absent: it is about no episode, such as `external.release`. */
  readonly rollout?: string;
  readonly attempt?: number;
  /** Of a tool, or a policy: which call, such as `3/0` or `3`. */
  readonly call?: string;
}

/** What a role serves once it is ready to. */
export interface Service<State, Own> {
  readonly methods: Readonly<Record<string, AnyMethod>>;
  readonly hooks: RoleHooks<State, Own>;
}
