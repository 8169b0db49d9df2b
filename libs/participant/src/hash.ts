import type { Digest } from "@holdpoint/schemas";
import { hash } from "node:crypto";

/** The lower-case hexadecimal SHA-256 of `text` as UTF-8. */
export function sha256(text: string): Digest {
  return hash("sha256", text);
}
