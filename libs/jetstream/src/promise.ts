/** What the broker promises about the stream of a run (L16), and how full it is. */
import { blobBucket, streamName, type StreamPromise } from "@holdpoint/schemas";
import * as z from "zod";
import { type Connection, internals } from "./connection.ts";
import { persist } from "./persist.ts";
import { streamState } from "./stream-state.ts";

export interface PromiseOptions {
  /** The monitoring address of the server, such as `http://127.0.0.1:8222`: only there it says whether it syncs every write. */
  readonly monitorUrl?: string;
}

const Varz = z.object({
  server_id: z.string(),
  jetstream: z.object({ config: z.object({ sync_always: z.boolean().default(false) }) }),
});
const monitorTimeoutMs = 5000;

/**
 * What is promised about the log of `run`, asked anew each time.
 *
 * @returns `syncAlways` null where it cannot be known: no `monitorUrl`, no answer there, or it is another server's
 * @throws HoldpointError `not_found` where the stream does not exist
 */
export async function streamPromise(
  connection: Connection,
  run: string,
  { monitorUrl }: PromiseOptions = {},
): Promise<StreamPromise> {
  const { manager, nats } = internals(connection);
  const stream = streamName(run);
  const { config } = await persist(connection, `asking about ${stream}`, () => manager.streams.info(stream));
  return {
    serverVersion: connection.serverVersion,
    syncAlways: monitorUrl === undefined ? null : await syncAlways(monitorUrl, nats.info?.server_id),
    replicas: config.num_replicas,
    persistMode: config.persist_mode ?? "default",
  };
}

async function syncAlways(monitorUrl: string, serverId: string | undefined): Promise<boolean | null> {
  try {
    const response = await fetch(new URL("/varz", monitorUrl), { signal: AbortSignal.timeout(monitorTimeoutMs) });
    const varz = Varz.parse(await response.json());
    return varz.server_id === serverId ? varz.jetstream.config.sync_always : null;
  } catch {
    return null;
  }
}

/** The part of its room that the fuller of the run's two streams has taken, or of the room of all streams: 0 to 1. */
export async function fullness(connection: Connection, run: string): Promise<number> {
  const { manager } = internals(connection);
  const { storage, limits } = await persist(connection, "asking about the account", () => manager.getAccountInfo());
  const streams = await Promise.all(
    [streamName(run), blobBucket(run)].map((stream) => streamState(connection, stream)),
  );
  const rooms = [{ bytes: storage, maxBytes: limits.max_storage }, ...streams];
  return Math.max(0, ...rooms.map(({ bytes, maxBytes }) => (maxBytes > 0 ? bytes / maxBytes : 0)));
}
