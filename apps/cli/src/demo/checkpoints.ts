/** The checkpoints and restores of a run, as its control events tell them. */
import type { Recorded } from "@holdpoint/eventsourcing";
import type { Branch } from "@holdpoint/eventsourcing";
import type { ControlEvent, Episode } from "@holdpoint/schemas";

/** Instants are the stream's, epoch milliseconds. */
export interface CheckpointFacts {
  readonly checkpointId: string;
  readonly openedAtMs: number;
  /** The sequence up to which it holds; null: it came to no cut. */
  readonly cut: number | null;
  readonly capturedAtMs: number | null;
  /** When work was let go on; null: it was never open again. */
  readonly letGoAtMs: number | null;
  readonly committedAtMs: number | null;
  /** The episodes that it can restore. */
  readonly scope: readonly Episode[];
  readonly restarts: readonly Episode[];
}

export interface RestoreFacts {
  readonly checkpointId: string;
  readonly source: string;
  /** Up to where the log was replayed. */
  readonly cut: number;
  readonly startedAtMs: number;
  /** null: it failed. */
  readonly installedAtMs: number | null;
  /** Of `restore.installed`; null: it failed. */
  readonly installedSequence: number | null;
  /** Under their new attempts. */
  readonly continued: readonly (Episode & { readonly from: number })[];
  readonly restarted: readonly Episode[];
  readonly leftOut: readonly (Episode & { readonly why: string })[];
}

export interface ControlFacts {
  readonly checkpoints: readonly CheckpointFacts[];
  readonly restores: readonly RestoreFacts[];
}

type ControlRecord = Recorded<ControlEvent>;
type Data<Type extends ControlEvent["type"]> = Extract<ControlEvent, { type: Type }>["data"];
type Editable<Facts> = { -readonly [Key in keyof Facts]: Facts[Key] };

/** Checkpoints and restores in the order in which they were opened. */
export function controlFacts(control: readonly ControlRecord[]): ControlFacts {
  const fold = new ControlFold();
  for (const record of control) fold.apply(record);
  return { checkpoints: [...fold.checkpoints.values()], restores: [...fold.restores.values()] };
}

/** What each restore made of `rollout`: the attempts that go on from others. */
export function branchesOf(restores: readonly RestoreFacts[], rollout: string): readonly Branch[] {
  return restores.flatMap(({ cut, installedSequence, continued }) =>
    continued
      .filter((episode) => installedSequence !== null && episode.rollout === rollout)
      .map(({ attempt, from }) => ({ attempt, from: { attempt: from, cut } })),
  );
}

class ControlFold {
  readonly checkpoints = new Map<string, Editable<CheckpointFacts>>();
  readonly restores = new Map<string, Editable<RestoreFacts>>();
  readonly #assigned = new Map<string, Data<"restore.started">["assignments"]>();

  apply({ event, timeMs, sequence }: ControlRecord): void {
    switch (event.type) {
      case "checkpoint.opened":
        if (event.data.kind === "checkpoint") this.#opened(event.data.checkpointId, timeMs);
        break;
      case "restore.started":
        this.#started(event.data, timeMs);
        break;
      case "restore.installed":
        this.#installed(event.data, { timeMs, sequence });
        break;
      default:
        this.#progress(event, { timeMs, sequence });
    }
  }

  #progress(event: ControlEvent, { timeMs, sequence }: { timeMs: number; sequence: number }): void {
    const id = "checkpointId" in event.data ? event.data.checkpointId : null;
    const checkpoint = this.checkpoints.get(id ?? "");
    if (checkpoint === undefined) return;
    if (event.type === "checkpoint.prepared") checkpoint.restarts = event.data.restarts;
    else if (event.type === "checkpoint.captured") {
      Object.assign(checkpoint, { cut: sequence, capturedAtMs: timeMs, scope: event.data.scope });
    } else if (event.type === "checkpoint.proceeded" || event.type === "checkpoint.resumed") {
      checkpoint.letGoAtMs ??= timeMs;
    } else if (event.type === "checkpoint.committed") checkpoint.committedAtMs = timeMs;
  }

  #opened(checkpointId: string, openedAtMs: number): void {
    const nothing = { cut: null, capturedAtMs: null, letGoAtMs: null, committedAtMs: null, scope: [], restarts: [] };
    this.checkpoints.set(checkpointId, { checkpointId, openedAtMs, ...nothing });
  }

  #started({ checkpointId, source, cut, assignments }: Data<"restore.started">, startedAtMs: number): void {
    this.#assigned.set(checkpointId, assignments);
    const nothing = { installedAtMs: null, installedSequence: null, continued: [], restarted: [], leftOut: [] };
    const sequence = Math.max(0, ...Object.values(cut));
    this.restores.set(checkpointId, { checkpointId, source, cut: sequence, startedAtMs, ...nothing });
  }

  #installed(
    { checkpointId, receipt }: Data<"restore.installed">,
    { timeMs, sequence }: { timeMs: number; sequence: number },
  ): void {
    const restore = this.restores.get(checkpointId);
    if (restore === undefined) return;
    const assigned = this.#assigned.get(checkpointId) ?? [];
    const continued = new Set(receipt.flatMap((entry) => entry.continued.map(({ rollout }) => rollout)));
    restore.installedAtMs = timeMs;
    restore.installedSequence = sequence;
    restore.continued = assigned
      .filter(({ rollout }) => continued.has(rollout))
      .map(({ rollout, from, to }) => ({ rollout, attempt: to, from }));
    restore.restarted = unique(receipt.flatMap((entry) => entry.restarted));
    restore.leftOut = unique(receipt.flatMap((entry) => entry.leftOut));
  }
}

function unique<E extends Episode>(episodes: readonly E[]): readonly E[] {
  return [...new Map(episodes.map((episode) => [`${episode.rollout}/${episode.attempt}`, episode])).values()];
}
