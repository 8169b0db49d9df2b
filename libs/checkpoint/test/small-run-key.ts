/**
 * When two worlds are the same: the canonical form of a world.
 *
 *  - Positions in the log are renamed by first mention: the deciders only ask whether two are equal. Where they ask for more, of a
 *    process's announcement, its being repeated or not is an equality as well.
 *  - Times count from now, since the deciders only compare and subtract.
 *  - The order in which answers to one ask, or rollouts and processes, became known is left out; that of commands and asks is not.
 *  - Left out is what only tells: words, results, times of announcements, who leads.
 */
import { hash } from "node:crypto";
import type { SmallProcess, World } from "./small-run.ts";

const positions = new Set([
  "sequence",
  "announcedSequence",
  "joinedSequence",
  "fencedAt",
  "command",
  "joins",
  "asked",
  "capturedSequence",
]);
const ofPositions = new Set(["ends", "cut"]);
const times = new Set(["atMs", "askedAtMs", "deadlineAtMs", "leaseUntilMs", "untilMs", "timeMs"]);
const words = new Set([
  "announcedAtMs",
  "openedAtMs",
  "lastAtMs",
  "restorableAtMs",
  "capturedAtMs",
  "incarnation",
  "message",
  "result",
  "stalled",
]);
const ofState = new Set(["run", "stream", "sequence", "controlSequence", "leader", "promise", "askers"]);

/** A name for everything that matters from here on; without `left`, for what is there already. */
export function keyOf(world: World, withLeft = true): string {
  const { state, processes, ghost, left, nowMs } = world;
  const known = Object.fromEntries(Object.entries(state).filter(([name]) => !ofState.has(name)));
  const told = { known, processes: processes.map((process) => processKey(process, world)), ghost };
  return hash("sha1", new Canonical(nowMs).text(withLeft ? { ...told, left } : told), "base64");
}

/** Whether two values that speak of the log are the same. */
export function isSame(one: unknown, other: unknown): boolean {
  return new Canonical(0).text(one) === new Canonical(0).text(other);
}

function processKey({ gate, fold, alive, end, unread, sessions, subject }: SmallProcess, { state }: World): unknown {
  if (!alive) return { fold, sessions };
  const facts = { fold, sessions, isAtEnd: end === state.ends.get(subject) };
  return gate === fold
    ? facts
    : { ...facts, gate, unread: unread?.map(({ event, sequence, timeMs }) => ({ event, sequence, timeMs })) };
}

class Canonical {
  readonly #nowMs: number;
  readonly #names = new Map<number, number>();

  constructor(nowMs: number) {
    this.#nowMs = nowMs;
  }

  text(value: unknown, name = ""): string {
    if (typeof value === "number") return this.#number(value, name);
    if (typeof value !== "object" || value === null) return String(value);
    if (Array.isArray(value)) return `[${value.map((each: unknown) => this.text(each)).join()}]`;
    if (value instanceof Set) return `{${[...value].map(String).toSorted().join()}}`;
    return value instanceof Map ? this.#map(value, name) : this.#object(value, name);
  }

  #object(value: object, name: string): string {
    let text = "{";
    for (const key in value) {
      if (words.has(key)) continue;
      const inner = this.text(Reflect.get(value, key), ofPositions.has(name) ? "sequence" : key);
      text += `${key}:${inner},`;
    }
    return text + "}";
  }

  #map(map: ReadonlyMap<unknown, unknown>, name: string): string {
    const entries = [...map];
    if (typeof entries[0]?.[0] === "string") entries.sort(([one], [other]) => (String(one) < String(other) ? -1 : 1));
    const inner = ofPositions.has(name) ? "sequence" : "";
    return `<${entries.map(([key, value]) => `${this.text(key, "sequence")}:${this.text(value, inner)}`).join()}>`;
  }

  #number(value: number, name: string): string {
    if (times.has(name)) return `t${value - this.#nowMs}`;
    if (!positions.has(name) || value === 0) return String(value);
    const known = this.#names.get(value) ?? this.#names.size + 1;
    this.#names.set(value, known);
    return `#${known}`;
  }
}
