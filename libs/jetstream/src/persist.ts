/** Trying again: a question that changes nothing may be asked until it is answered. */
import { HoldpointError } from "@holdpoint/errors";
import type { AbortSignalLike } from "@holdpoint/eventsourcing";
import { setTimeout as pause } from "node:timers/promises";
import type { Connection } from "./connection.ts";

const firstPauseMs = 10;
const longestPauseMs = 1000;

/** Waits before try number `tries + 1`: doubled each time, never above a second, then for the connection. */
export async function backOff(
  connection: Connection,
  tries: number,
  doing: string,
  signal?: AbortSignalLike,
): Promise<void> {
  await pause(Math.min(firstPauseMs * 2 ** Math.min(tries, 10), longestPauseMs));
  await connection.whenConnected(doing, signal);
}

/**
 * What `ask` answers in the end: a broken connection, a slow or a starting server are waited for.
 *
 * @throws HoldpointError `unavailable` where the connection was closed or `signal` aborted; other codes at once
 */
export async function persist<T>(
  connection: Connection,
  doing: string,
  ask: () => Promise<T>,
  signal?: AbortSignalLike,
): Promise<T> {
  for (let tries = 0; ; tries++) {
    await connection.whenConnected(doing, signal);
    try {
      return await connection.whileConnected(doing, ask, signal);
    } catch (error) {
      if (!HoldpointError.is(error, "unavailable") || connection.isClosed || signal?.aborted === true) throw error;
      await backOff(connection, tries, doing, signal);
    }
  }
}
