/**
 * Explores everything that a small system can do, breadth first: states that are the same, by their key, are visited once, so the
 * first history that breaks a rule is one of the shortest.
 */
export interface Space<World, Action> {
  /** What may happen next. */
  readonly actions: (world: World) => readonly Action[];
  /** The world after `action`, as a new one: `world` stays as it is. */
  readonly after: (world: World, action: Action) => World;
  /** Equal for worlds that behave alike from here on. */
  readonly key: (world: World) => string;
  /** What is wrong in this world, or on the way to it; undefined where nothing is. Asked once for each key. */
  readonly fault: (world: World) => string | undefined;
}

export interface Counterexample<World, Action> {
  readonly start: World;
  readonly actions: readonly Action[];
  readonly fault: string;
}

export interface Exploration<World, Action> {
  /** Different states, those at the start included. */
  readonly states: number;
  readonly transitions: number;
  /** The length of the longest history that was followed. */
  readonly depth: number;
  /** Whether nothing was left to visit. */
  readonly isComplete: boolean;
  readonly counterexample: Counterexample<World, Action> | undefined;
}

/** What is kept of a visited state: not its world, only the way to it. */
type Path<World, Action> =
  | { readonly start: World }
  | { readonly before: Path<World, Action>; readonly action: Action };

/** Visits what can be reached from `starts`, at most `maxStates` states; stops at the first fault. */
export function explore<World, Action>(
  space: Space<World, Action>,
  starts: readonly World[],
  maxStates: number,
): Exploration<World, Action> {
  const seen = new Set<string>();
  let layer: { readonly world: World; readonly path: Path<World, Action> }[] = [];
  let next: typeof layer = [];
  let transitions = 0;
  let depth = 0;

  /** The fault of `world`, if it is new and has one. */
  function visit(world: World, path: Path<World, Action>): string | undefined {
    const key = space.key(world);
    if (seen.has(key)) return undefined;
    seen.add(key);
    next.push({ world, path });
    return space.fault(world);
  }

  function ended(found?: { readonly fault: string; readonly path: Path<World, Action> }): Exploration<World, Action> {
    const counterexample = found === undefined ? undefined : { ...historyOf(found.path), fault: found.fault };
    return { states: seen.size, transitions, depth, isComplete: next.length === 0, counterexample };
  }

  for (const start of starts) {
    const fault = visit(start, { start });
    if (fault !== undefined) return ended({ fault, path: { start } });
  }
  /** What comes of everything that may happen in one world; undefined: go on. */
  function follow(world: World, before: Path<World, Action>): Exploration<World, Action> | undefined {
    for (const action of space.actions(world)) {
      transitions += 1;
      const path = { before, action };
      const fault = visit(space.after(world, action), path);
      if (fault !== undefined) return ended({ fault, path });
      if (seen.size >= maxStates) return ended();
    }
    return undefined;
  }

  while (next.length > 0) {
    layer = next;
    next = [];
    depth += 1;
    for (const { world, path } of layer) {
      const end = follow(world, path);
      if (end !== undefined) return end;
    }
  }
  return ended();
}

function historyOf<World, Action>(path: Path<World, Action>): { start: World; actions: readonly Action[] } {
  const actions: Action[] = [];
  let at = path;
  while ("before" in at) {
    actions.unshift(at.action);
    at = at.before;
  }
  return { start: at.start, actions };
}
