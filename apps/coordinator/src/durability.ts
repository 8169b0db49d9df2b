/** What the stream has to promise before anything is built on it (L16). */
import { HoldpointError } from "@holdpoint/errors";
import type { StreamPromise } from "@holdpoint/schemas";

/**
 * What is weak about the promise, as sentences; empty where it is as strong as `nats.conf` makes it.
 *
 * @throws HoldpointError `unavailable` where acknowledged messages can be lost and that was not allowed
 */
export function weaknessesOf(promise: StreamPromise, allowWeak: boolean): readonly string[] {
  const losing = [
    ...(promise.syncAlways === false
      ? ["the server acknowledges before it has written (sync_interval is not always)"]
      : []),
    ...(promise.persistMode === "async"
      ? ["the stream acknowledges before it has written (persist_mode is async)"]
      : []),
  ];
  if (losing.length > 0 && !allowWeak) {
    const advice = "run nats-server with the nats.conf of Holdpoint, or set HOLDPOINT_ALLOW_WEAK=yes";
    throw new HoldpointError("unavailable", `${losing.join(" and ")}; ${advice}`, { details: { ...promise } });
  }
  if (promise.syncAlways !== null) return losing;
  return [...losing, "whether the server syncs every write is not known: set HOLDPOINT_MONITOR_URL"];
}
