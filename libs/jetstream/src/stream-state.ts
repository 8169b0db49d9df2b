/** What the leader says of the stream, and whether it is still the stream that it was (L15). */
import type { AbortSignalLike } from "@holdpoint/eventsourcing";
import { HoldpointError } from "@holdpoint/errors";
import { type Connection, internals } from "./connection.ts";
import { persist } from "./persist.ts";

export interface StreamState {
  readonly stream: string;
  /** When the stream was made: another instant is another stream. */
  readonly created: string;
  /** The first sequence that is there; one above the last where it is empty. */
  readonly first: number;
  readonly last: number;
  /** Sequences between first and last that are not there. */
  readonly missing: number;
  readonly bytes: number;
  readonly maxBytes: number;
}

export async function streamState(
  connection: Connection,
  stream: string,
  signal?: AbortSignalLike,
): Promise<StreamState> {
  const { manager } = internals(connection);
  const info = await persist(connection, `asking about ${stream}`, () => manager.streams.info(stream), signal);
  const { first_seq: first, last_seq: last, messages, bytes } = info.state;
  const missing = messages === 0 ? 0 : last - first + 1 - messages;
  return { stream, created: info.created, first, last, missing, bytes, maxBytes: info.config.max_bytes };
}

/** That a stream is not what it was: nothing that is read from it can be trusted. */
export function damaged(stream: string, what: string, details: Readonly<Record<string, unknown>>): HoldpointError {
  return new HoldpointError("invalid_checkpoint_state", `the stream ${stream} ${what}`, { details });
}
