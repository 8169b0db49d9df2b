/** The ids of traces and spans, made of names: whoever knows the names knows the ids, without being told. */
import { createHash } from "node:crypto";

function digits(text: string, bytes: number): string {
  return createHash("sha256")
    .update(text)
    .digest("hex")
    .slice(0, 2 * bytes);
}

/** The trace of a checkpoint or restore: the first 16 bytes of SHA-256 of `<run>/<checkpointId>`, in hexadecimal digits. */
export function traceIdOf(run: string, checkpointId: string): string {
  return digits(`${run}/${checkpointId}`, 16);
}

/** A span of that trace: the first 8 bytes of SHA-256 of `<run>/<trace>/<key>`. */
export function spanIdOf(run: string, trace: string, key: string): string {
  return digits(`${run}/${trace}/${key}`, 8);
}
