import type { Json } from "@holdpoint/schemas";

/**
 * `value`, frozen all through: a state that a checkpoint has fixed is never changed under it. What is frozen already is taken to be so
 * throughout, so that a small change of a large state costs little.
 */
export function frozen<T extends Json>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  for (const inner of Object.values(value)) frozen(inner);
  return Object.freeze(value);
}
