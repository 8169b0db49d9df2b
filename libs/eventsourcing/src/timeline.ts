/**
 * Timelines as paths (L6): which events belong to the history of an attempt.
 *
 * A restore makes a new attempt that goes on from an earlier one at a cut. So the attempts of a rollout are a tree, and the
 * history of one attempt is the path to it: of each ancestor the part up to where its child left it, of itself everything.
 * Only events of the rollout's sessions are judged by this; all others count always.
 */

/** An attempt, and where it left the one it continues (absent: it started from its input). */
export interface Branch {
  readonly attempt: number;
  readonly from?: { readonly attempt: number; readonly cut: number };
}

/** Of `attempt`, the events up to and including sequence `upTo`. */
export interface Segment {
  readonly attempt: number;
  readonly upTo: number;
}

/** From the first ancestor to the attempt itself, whose segment has no end. */
export type Path = readonly Segment[];

/** The path to `attempt` in the tree of `branches`; an attempt that the tree does not know started from its input. */
export function pathTo(branches: readonly Branch[], attempt: number): Path {
  const known = new Map(branches.map((branch) => [branch.attempt, branch]));
  const path: Segment[] = [];
  let segment: Segment | undefined = { attempt, upTo: Number.POSITIVE_INFINITY };
  while (segment !== undefined) {
    path.unshift(segment);
    segment = parentOf(known.get(segment.attempt), segment.upTo);
  }
  return path;
}

/** A child's part of its parent ends at its cut, and never after the end of the child's own part. */
function parentOf(branch: Branch | undefined, upTo: number): Segment | undefined {
  if (branch?.from === undefined || branch.from.attempt >= branch.attempt) return undefined;
  return { attempt: branch.from.attempt, upTo: Math.min(branch.from.cut, upTo) };
}

/** Whether what `attempt` said at `sequence` belongs to the history that `path` is. */
export function countsOn(path: Path, attempt: number, sequence: number): boolean {
  return path.some((segment) => segment.attempt === attempt && sequence <= segment.upTo);
}
