/** Commands as data: what each is about, and what makes two of them the same. */
import type { Command, Episode, Operation } from "@holdpoint/schemas";
import { instantMs } from "./instant.ts";

type OrderByOperation = { [C in Command as C["operation"]]: C };

/** The command of one operation. */
export type OrderOf<O extends Operation> = OrderByOperation[O];

type TypedOrder<O extends Operation> = { [K in O]: OrderByOperation[K] & { readonly operation: K } }[O];

/** For each operation, a function of its own commands. */
export type ByOperation<Arguments extends readonly unknown[], R> = {
  readonly [O in Operation]: (order: OrderByOperation[O], ...rest: Arguments) => R;
};

/** What the function of the order's operation says of it. */
export function byOperation<O extends Operation, Arguments extends readonly unknown[], R>(
  table: ByOperation<Arguments, R>,
  order: TypedOrder<O>,
  ...rest: Arguments
): R {
  const said: ByOperation<Arguments, R>[O] = table[order.operation];
  return said(order, ...rest);
}

/** The checkpoint, or restore, that the order names; null where it names none. */
export function idOf(order: Command): string | null {
  return "checkpointId" in order ? order.checkpointId : null;
}

/** Epoch milliseconds, counted from the stream's timestamp of the command (L10). Without a deadline: infinity. */
export function deadlineOf(order: Command, atMs: number): number {
  if (order.timeoutMs !== undefined) return atMs + order.timeoutMs;
  return order.deadlineAt === undefined ? Number.POSITIVE_INFINITY : instantMs(order.deadlineAt);
}

/** Equal for the same operation, id and payload; the deadline, and the order within lists, make no difference. */
export function keyOfOrder(order: Command): string {
  const { deadlineAt: _at, timeoutMs: _ms, ...payload } = order;
  return JSON.stringify(payload, (_name, value: unknown) => (Array.isArray(value) ? sorted(value) : value));
}

/** Of a cut that stands the scope is known, whether it was named or not: what is left makes a command on it the same. */
export function keyWithoutScope(order: Command): string {
  return order.operation === "capture" || order.operation === "commit"
    ? keyOfOrder({ ...order, scope: undefined })
    : keyOfOrder(order);
}

/** Whether both name the same episodes, in whatever order. */
export function isSameScope(one: readonly Episode[], other: readonly Episode[]): boolean {
  return without(one, other).length === 0 && without(other, one).length === 0;
}

function sorted(list: readonly unknown[]): readonly unknown[] {
  return list.toSorted((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1));
}

/** A name for an episode in a set or a text. */
export function episodeKey({ rollout, attempt }: Episode): string {
  return `${rollout}#${attempt}`;
}

/** `episodes` without those in `others`, each once. */
export function without(episodes: readonly Episode[], others: readonly Episode[]): Episode[] {
  const left = new Map(episodes.map((episode) => [episodeKey(episode), episode]));
  for (const episode of others) left.delete(episodeKey(episode));
  return [...left.values()].map(({ rollout, attempt }) => ({ rollout, attempt }));
}

/** Each episode once, in the order of first mention. */
export function distinct(episodes: readonly Episode[]): Episode[] {
  return without(episodes, []);
}
