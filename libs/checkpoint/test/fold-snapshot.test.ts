/** The coordinator's fold, written out at any point and read back: what a snapshot of it rests on (L14). */
import { advance, type CoordinatorState, foldVersion, initialState } from "@holdpoint/checkpoint";
import type { StoredMessage } from "@holdpoint/eventsourcing";
import { digest } from "@holdpoint/testing";
import { deserialize, serialize } from "node:v8";
import { expect, test } from "vitest";
import { played, scenarioRun } from "./crash-scenario.ts";
import { run, type Simulation } from "./simulation.ts";

async function messagesOf({ log }: Simulation): Promise<StoredMessage[]> {
  const messages: StoredMessage[] = [];
  await log.read({ upTo: await log.lastSequence() }, (message) => void messages.push(message));
  return messages;
}

function folded(state: CoordinatorState, messages: readonly StoredMessage[]): CoordinatorState {
  let next = state;
  for (const message of messages) next = advance(next, message);
  return next;
}

async function history(): Promise<StoredMessage[]> {
  const simulation = await scenarioRun();
  await played(simulation);
  return messagesOf(simulation);
}

function isState(value: unknown): value is CoordinatorState {
  return typeof value === "object" && value !== null && "controlSequence" in value;
}

function read(bytes: Uint8Array): CoordinatorState {
  const value: unknown = deserialize(bytes);
  if (!isState(value)) throw new Error("no state of a coordinator");
  return value;
}

test("[L14] a fold that is written out and read back at any message goes on to the same state", async () => {
  const messages = await history();
  const fresh = initialState(run, `HP_${run}`);
  const whole = folded(fresh, messages);
  let state = initialState(run, `HP_${run}`);
  let pending = 0;
  for (const [at, message] of messages.entries()) {
    state = advance(state, message);
    const bytes = serialize(state);
    expect(read(bytes)).toEqual(state);
    if (state.queue.size + state.ops.size + state.askers.size + state.captures.size > 0) pending += 1;
    expect(folded(read(bytes), messages.slice(at + 1))).toEqual(whole);
  }
  expect(pending).toBeGreaterThan(100);
});

/** The paths in `value`, with what kind of thing is there; elements of lists, maps and sets count as one. */
function shapeOf(value: unknown, path = "state"): string[] {
  if (typeof value !== "object" || value === null) return [`${path}: ${value === null ? "null" : typeof value}`];
  if (value instanceof Map) return [...value.values()].flatMap((each) => shapeOf(each, `${path}<>`));
  if (value instanceof Set || Array.isArray(value)) return [...value].flatMap((each) => shapeOf(each, `${path}[]`));
  return Object.entries(value).flatMap(([key, each]) => shapeOf(each, `${path}.${key}`));
}

test("[L14] a state of another shape has another version", async () => {
  const shape = new Set<string>();
  let state = initialState(run, `HP_${run}`);
  for (const message of await history()) {
    state = advance(state, message);
    for (const path of shapeOf(state)) shape.add(path);
  }
  expect(shape.size).toBeGreaterThan(100);
  // Another digest under the same version: snapshots of before would be taken for states of this fold. Raise `foldVersion`.
  expect([foldVersion, digest([...shape].toSorted().join("\n"))]).toEqual([
    2,
    "1965e2f24658e5b0a57d294494ef4cdf5d020af6933048e74a254fa287b8cef0",
  ]);
});
