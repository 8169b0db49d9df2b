import type { Controller } from "@holdpoint/client";
import type { BlobStore, EventLog } from "@holdpoint/eventsourcing";
import type { PlannedGroup } from "@holdpoint/repair";
import type { Logger } from "@holdpoint/telemetry";
import type { TrainerLogEvent } from "./publications.ts";
import type { RunView } from "./run-view.ts";
import type { TrainerSettings } from "./settings.ts";
import type { StateDir } from "./state-dir.ts";

/** What the parts of a trainer share. */
export interface TrainerContext {
  readonly settings: TrainerSettings;
  readonly run: string;
  readonly groups: readonly PlannedGroup[];
  readonly log: EventLog;
  readonly blobs: BlobStore;
  readonly view: RunView;
  readonly dir: StateDir;
  readonly controller: Controller;
  readonly logger: Logger;
  /** Appends to the trainer's own log. */
  readonly say: (events: readonly TrainerLogEvent[]) => Promise<void>;
}
