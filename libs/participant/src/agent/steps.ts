/**
 * What an activation has come to so far, in the order in which it was recorded.
 *
 * A list that shares its past: adding to it costs the same whatever came before, and so does fixing it for a checkpoint. It is kept
 * in pieces, since a value that nests thousands deep cannot be written into a snapshot.
 */
import type { Content, Digest } from "@holdpoint/schemas";

/** A model call and its response. */
interface CallStep {
  readonly kind: "call";
  readonly turn: number;
  /** null: the log does not say. */
  readonly request: Digest | null;
  readonly response: Content;
}

/** A tool call and its result. */
export interface ToolStep {
  readonly kind: "tool";
  readonly turn: number;
  readonly index: number;
  /** null: an old log does not say. */
  readonly name: string | null;
  readonly arguments: Digest | null;
  readonly result: Content;
}

export type Step = CallStep | ToolStep;

export interface Steps {
  /** Oldest first. */
  readonly recent: readonly Step[];
  readonly before: Steps | null;
}

export const noSteps: Steps = { recent: [], before: null };

const pieceLength = 64;

export function withStep({ recent, before }: Steps, step: Step): Steps {
  if (recent.length < pieceLength) return { recent: [...recent, step], before };
  return { recent: [step], before: { recent, before } };
}

/** The steps from the latest back to the first. */
export function* latestFirst(steps: Steps): Generator<Step> {
  for (let piece: Steps | null = steps; piece !== null; piece = piece.before) yield* piece.recent.toReversed();
}

/** Where an activation stands: the model calls that were answered, and the tool calls of the turn it is in. */
export interface Position {
  readonly turn: number;
  readonly index: number;
}

export const start: Position = { turn: 0, index: 0 };

/** How the next tool call is named: after the turn whose response asked for it; before the first call it is turn 0 as well. */
export function toolAt({ turn, index }: Position): Position {
  return { turn: Math.max(0, turn - 1), index };
}

export function afterCall({ turn, index }: Position): Position {
  return { turn: turn + 1, index: turn === 0 ? index : 0 };
}

export function afterTool({ turn, index }: Position): Position {
  return { turn, index: index + 1 };
}

/** The steps that were taken after an activation stood at `position`. Looks at no earlier ones. */
export function stepsAfter(steps: Steps, position: Position): Steps {
  const later: Step[] = [];
  for (const step of latestFirst(steps)) {
    if (!isAfter(step, position)) break;
    later.push(step);
  }
  return later.toReversed().reduce(withStep, noSteps);
}

function isAfter(step: Step, position: Position): boolean {
  if (step.kind === "call") return step.turn >= position.turn;
  const next = toolAt(position);
  return step.turn > next.turn || (step.turn === next.turn && step.index >= next.index);
}
