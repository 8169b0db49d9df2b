/** Where the work of one session is done, and what of it may still be on disk. */
import { Bench as SessionBench, Benches as SessionBenches } from "@holdpoint/participant";
import type { Content } from "@holdpoint/schemas";

export class Bench extends SessionBench<Content> {
  /** Snapshots to roll back calls that may still be on disk. */
  readonly snapshots = new Set<string>();
}

export type Benches = SessionBenches<Bench>;

export function newBenches(): Benches {
  return new SessionBenches(() => new Bench());
}
