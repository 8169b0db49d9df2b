/**
 * The ledger rows of episodes, from the model servers' logs, along the path of each attempt (L5, L6).
 *
 * The fold is the model server's own (`@holdpoint/ledger`): a row counts when its response was delivered, the first response to a
 * turn stands, and what was not delivered at a cut is left out of what goes on from there.
 */
import { decodeEvents, type EventLog, eventSchema, type Path, type Recorded } from "@holdpoint/eventsourcing";
import { deliveredOnly, emptyLedger, evolveLedger, type Hash, type Ledger, lineage } from "@holdpoint/ledger";
import { type Episode, filters, logEvents, type LogEventOf } from "@holdpoint/schemas";

const modelEvents = eventSchema(logEvents.model);

/** What the trainer needs of a delivered call. `staging`: null where nothing was drawn. */
export interface Row {
  readonly turn: number;
  readonly staging: string | null;
}

export interface EpisodePath extends Episode {
  readonly path: Path;
}

/** Rows of one episode, oldest first, as far as its model calls were read. */
class RowReader {
  readonly #path: Path;
  readonly #hash: Hash;
  #ledger: Ledger = emptyLedger;
  #segment = 0;

  constructor(path: Path, hash: Hash) {
    this.#path = path;
    this.#hash = hash;
  }

  /** Takes the next event about the rollout, in stream order; one beside the path changes nothing. */
  take(attempt: number, { event, sequence }: Recorded<LogEventOf<"model">>): void {
    const at = this.#path.findIndex((segment) => segment.attempt === attempt && sequence <= segment.upTo);
    if (at < this.#segment) return;
    if (at > this.#segment) this.#ledger = deliveredOnly(this.#ledger);
    this.#segment = at;
    this.#ledger = evolveLedger(this.#ledger, event, this.#hash);
  }

  get rows(): readonly Row[] {
    return lineage(this.#ledger).map(({ turn, staging }) => ({ turn, staging }));
  }
}

/** The rows of each of `episodes`, in their order, from what was said from `from` up to `upTo`. */
export async function readRows(
  { log, run, hash }: { readonly log: EventLog; readonly run: string; readonly hash: Hash },
  episodes: readonly EpisodePath[],
  { from, upTo }: { readonly from: number; readonly upTo: number },
): Promise<readonly (readonly Row[])[]> {
  const readers = new Map(episodes.map(({ rollout, path }) => [rollout, new RowReader(path, hash)]));
  await log.read({ from, upTo, subjects: [filters.logsOf(run, "model")] }, (message) => {
    for (const recorded of decodeEvents(message, modelEvents).events) {
      const { data } = recorded.event;
      if ("rollout" in data) readers.get(data.rollout)?.take(data.attempt, recorded);
    }
  });
  return episodes.map(({ rollout }) => readers.get(rollout)?.rows ?? []);
}

/** Whether rows are missing: turns count from 0 without a gap, and an episode that came to its end has at least one. */
export function isTorn(rows: readonly Row[]): boolean {
  return rows.length === 0 || rows.some(({ turn }, index) => turn !== index);
}
