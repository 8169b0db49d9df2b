/** Whether what a ledger refers to is there: a row whose staged tokens are missing must not be trained on. */
import type { BlobStore } from "@holdpoint/eventsourcing";
import { type Ledger, type LedgerEvent, type LedgerRow, lineage } from "@holdpoint/ledger";
import type { Digest, Episode } from "@holdpoint/schemas";

/** Blobs asked for at once. */
const concurrency = 32;

/** For each of `sessions` whose ledger refers to something that is missing, the event that makes it a restart. */
export async function markIncomplete(
  sessions: readonly (Episode & { readonly state: Ledger })[],
  blobs: BlobStore,
  signal: AbortSignal,
): Promise<readonly LedgerEvent[]> {
  const wanted = [...new Set(sessions.flatMap(({ state }) => lineage(state).flatMap(blobsOf)))];
  const missing = await missingOf(wanted, blobs, signal);
  return sessions.flatMap(({ rollout, attempt, state }): LedgerEvent[] => {
    const row = lineage(state).find((candidate) => blobsOf(candidate).some((digest) => missing.has(digest)));
    if (row === undefined) return [];
    const why = `what the call of turn ${row.turn} staged is missing`;
    return [{ type: "session.restart_marked", data: { rollout, attempt, why } }];
  });
}

/** The blobs that a row refers to: what was staged, and a response that is too large for its event. */
function blobsOf({ staging, response }: LedgerRow): readonly Digest[] {
  return [...(staging === null ? [] : [staging]), ...(response.text === undefined ? [response.digest] : [])];
}

async function missingOf(
  wanted: readonly Digest[],
  blobs: BlobStore,
  signal: AbortSignal,
): Promise<ReadonlySet<Digest>> {
  const missing = new Set<Digest>();
  const remaining = wanted.values();
  const ask = async () => {
    for (const digest of remaining) {
      signal.throwIfAborted();
      if (!(await blobs.has(digest))) missing.add(digest);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, ask));
  return missing;
}
