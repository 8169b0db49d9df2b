/**
 * Edges agree (L5): a call belongs to a cut only if both its ends say so. What the agent has received must be what the model, or the
 * resources servers, have delivered to it; in both directions, since one number is compared with the other.
 */
import type { Edges, Role } from "@holdpoint/schemas";
import { episodeKey } from "./orders.ts";
import type { CapturedSession, CoordinatorState } from "./state.ts";

type Edge = { readonly received: number; readonly last: string | null };

/** The calls of one kind, and the role that answers them. */
const kinds = [
  { callee: "model", edge: (edges: Edges) => edges.calls, what: "model calls" },
  { callee: "resources", edge: (edges: Edges) => edges.tools, what: "tool calls" },
] as const;

type Captured = ReadonlyMap<string, readonly CapturedSession[]>;

/** A sentence for each session whose ends disagree in what the processes captured; empty where the cut is consistent. */
export function disagreements(state: CoordinatorState, captured: Captured): readonly string[] {
  return kinds.flatMap(({ callee, edge, what }) => {
    const callers = edgesOf(state, captured, "agent", edge);
    const callees = edgesOf(state, captured, callee, edge);
    const isStrict = [...state.processes.values()].some(({ role, mode, expected }) => {
      return expected && role === callee && mode === "exported";
    });
    return [...callers].flatMap(([key, ends]) =>
      compare(key, what, ends, callees.get(key) ?? (isStrict ? [] : undefined)),
    );
  });
}

/** What each session's captures at `role` say of their edges, by episode. */
function edgesOf(
  { processes }: CoordinatorState,
  captured: Captured,
  role: Role,
  edge: (edges: Edges) => Edge | undefined,
): ReadonlyMap<string, readonly Edge[]> {
  const found = new Map<string, Edge[]>();
  for (const [key, sessions] of captured) {
    if (processes.get(key)?.role !== role) continue;
    for (const session of sessions) {
      const said = edge(session.edges);
      if (said !== undefined) found.set(episodeKey(session), [...(found.get(episodeKey(session)) ?? []), said]);
    }
  }
  return found;
}

/** `callees` undefined: nobody at the other end exports such sessions, and there is nothing to compare with. */
function compare(key: string, what: string, callers: readonly Edge[], callees: readonly Edge[] | undefined): string[] {
  if (callees === undefined) return [];
  const received = total(callers);
  const delivered = total(callees);
  const [rollout, attempt] = key.split("#");
  const where = `${rollout} attempt ${attempt}`;
  if (received !== delivered) {
    return [`${where}: the agent has received ${received} ${what}, the other end has delivered ${delivered}`];
  }
  const last = callers[0]?.last ?? null;
  if (received === 0 || callees.some((edge) => edge.last === last)) return [];
  return [`${where}: the last of ${received} ${what} has another digest at each end`];
}

function total(edges: readonly Edge[]): number {
  return edges.reduce((sum, { received }) => sum + received, 0);
}
