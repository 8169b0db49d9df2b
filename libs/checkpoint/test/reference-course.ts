/** The course of commands in the reference model: how each begins, waits, and ends. */
import type { Operation, Role } from "@holdpoint/schemas";
import {
  beginnings,
  busy,
  doubts,
  ends,
  failures,
  graceMs,
  type Model,
  onOpen,
  type Order,
  phases,
  timeless,
  timeoutMs,
  type UnderWay,
} from "./reference-model.ts";

/** The coordinator takes the command: what is decided at once, or what is under way from here on. */
export function begin(model: Model, order: Order, nowMs: number): UnderWay {
  const twin = model.underWay.find((each) => keyOf(each.order) === keyOf(order));
  const code = twin === undefined ? refusal(model, order) : undefined;
  if (code !== undefined) return { order, code };
  if (order.operation === "status" || order.operation === "remove") return { order, code: atOnce(model, order) };
  const begun = twin ?? { order, code: atOnce(model, order) };
  if (begun.code === undefined && twin === undefined) model.underWay.push(begun);
  moveLease(model, order, nowMs);
  return begun;
}

/** What stands from here on; "ok" where nobody has to answer. */
function atOnce(model: Model, { operation, payload, id }: Order): string | undefined {
  beginnings[operation]?.(model, payload, id);
  return operation === "renew" || operation === "remove" || operation === "status" ? "ok" : undefined;
}

function keyOf({ operation, id, payload }: Order): string {
  return [operation, id, payload].join();
}

/** From now, or from the latest deadline of what is under way for it. */
function moveLease({ open, underWay }: Model, { isLate }: Order, nowMs: number): void {
  if (open === undefined) return;
  const isTimed = !isLate || underWay.some(({ order }) => order.id === open.id && !order.isLate);
  open.leaseUntilMs = nowMs + (isTimed ? timeoutMs : 0) + graceMs;
}

function refusal(model: Model, order: Order): string | undefined {
  const { operation, id, payload, isLate } = order;
  const isTooLate = isLate && !timeless.includes(operation);
  return (
    (onOpen.includes(operation) ? fenced(model, order) : undefined) ??
    hindered(model, operation) ??
    (isTooLate ? "deadline_exceeded" : undefined) ??
    doubts[operation]?.(model, payload, id)
  );
}

function fenced({ stale, open }: Model, { operation, id, payload }: Order): string | undefined {
  if (stale.has(id)) return "stale_checkpoint";
  if (open === undefined) return undefined;
  const done = open.done.get(operation) ?? payload;
  if (open.id !== id || done !== payload) return "checkpoint_conflict";
  return open.done.has(operation) ? "ok" : undefined;
}

function hindered({ underWay, stale, phase, open }: Model, operation: Operation): string | undefined {
  const others = underWay.map(({ order }) => order).filter((order) => busy[operation]?.includes(order.operation));
  const other = others.find(({ id }) => !stale.has(id));
  if (other !== undefined && other.operation === operation && operation !== "forget") return "checkpoint_conflict";
  const isAllowed = phases[operation]?.includes(phase) !== false;
  const isOtherKind = operation === "prepare" && open?.kind === "restore";
  return other !== undefined || !isAllowed || isOtherKind ? "invalid_phase" : undefined;
}

const stages: readonly (readonly Role[])[] = [["environment"], ["model"], ["agent"], ["resources"]];

/** The first who keep the command from its success, and whether they make it wait to the end of its time. */
function hindrance({ expected }: Model, { operation }: Order): { code: string; hangs: boolean } | undefined {
  const isStaged = operation === "prepare" || operation === "checkpoint";
  for (const roles of isStaged ? stages : [stages.flat()]) {
    const states = [...expected].filter(([name]) => roles.some((role) => name.startsWith(role))).map(([, how]) => how);
    if (states.includes("silent")) return { code: "deadline_exceeded", hangs: true };
    if (states.includes("broken")) return { code: "unavailable", hangs: false };
  }
  return undefined;
}

/** Whoever answers has answered: what waits for nobody is over. A checkpoint that has failed cleans up until all have answered. */
export function settled(model: Model): void {
  for (const begun of model.underWay) if (hindrance(model, begun.order)?.hangs !== true) fall(model, begun);
  const isAwaited = [...model.expected.values()].includes("silent");
  model.underWay = model.underWay.filter(({ order, code }) => {
    return code === undefined || (isAwaited && order.operation === "checkpoint");
  });
}

/** Its time is over for everything under way. */
export function ranOut(model: Model): void {
  for (const begun of model.underWay) fall(model, begun);
  model.underWay = [];
}

function fall(model: Model, begun: UnderWay): void {
  if (begun.code !== undefined) return;
  const { operation, id, payload } = begun.order;
  const code = operation === "release" ? undefined : hindrance(model, begun.order)?.code;
  begun.code = code ?? "ok";
  if (code !== undefined) return failures[operation]?.(model, payload, id);
  if (onOpen.includes(operation)) model.open?.done.set(operation, payload);
  ends[operation]?.(model, payload, id);
}
