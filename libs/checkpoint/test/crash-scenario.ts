/** A recorded run in which every operation happens, one is refused, and a lease ends: what the crash matrices compare. */
import type { ControlEvent, Operation, Outcome } from "@holdpoint/schemas";
import { replacements } from "./retired-run.ts";
import { type Simulation, startedRun } from "./simulation.ts";

const c1 = { checkpointId: "c1" };
const c4 = { checkpointId: "c4" };
const outlived = { until: "the lease ends" } as const;

type Step = readonly [Operation, object] | typeof outlived;

export const scenario: readonly Step[] = [
  ["discover", {}],
  ["prepare", c1],
  ["renew", c1],
  ["capture", c1],
  ["proceed", c1],
  ["commit", c1],
  ["resume", c1],
  ["prepare", c1], // refused: stale
  ["prepare", { checkpointId: "c2" }],
  outlived,
  ["checkpoint", { checkpointId: "c3" }],
  ["release", { checkpointId: "c3", kept: ["c1"] }],
  ["retire", { rollouts: replacements(0) }],
  ["restore", { checkpointId: "x1", source: "c1" }],
  ["status", {}],
  ["resume", { checkpointId: "x1" }],
  ["remove", { role: "resources", instance: "resources2" }],
  ["release", { checkpointId: "x1", kept: [] }],
  ["retire", { rollouts: replacements(1) }],
  ["forget", { rollouts: ["r1", "r2"] }],
  ["prepare", c4],
  ["commit", c4],
];

/** A run with a participant of two workers, and one that is to be removed. */
export async function scenarioRun(): Promise<Simulation> {
  const simulation = await startedRun();
  await simulation.join({ role: "agent", worker: "1" }, { role: "resources", instance: "resources2" });
  await simulation.settle();
  simulation.appends = 0;
  return simulation;
}

/** What a run came to, without what a coordinator's or a process's new start shifts: positions and incarnations. */
export interface Ended {
  readonly answers: readonly unknown[];
  readonly phase: string;
  readonly stale: readonly string[];
  readonly marks: readonly unknown[];
  readonly restorable: unknown;
  /** Every cut that was ever committed. */
  readonly cuts: readonly unknown[];
  /** Admission of each process. */
  readonly closed: readonly unknown[];
  readonly story: readonly string[];
}

/** Plays the scenario; `beforeReply` is called when an answer is in the log, and nobody has been told. */
export async function played(simulation: Simulation, beforeReply?: (reply: number) => Promise<void>): Promise<Ended> {
  const answers: unknown[] = [];
  for (const step of scenario) {
    if ("until" in step) await simulation.outlive();
    else answers.push(placeless(await replied(simulation, step, () => beforeReply?.(answers.length + 1))));
  }
  return ended(simulation, answers);
}

async function replied(
  simulation: Simulation,
  [operation, body]: readonly [Operation, object],
  before: () => Promise<void> | undefined,
): Promise<Outcome> {
  const isQuestion = operation === "status" || operation === "discover";
  const command = await simulation.command(operation, isQuestion ? body : { timeoutMs: 30_000, ...body });
  await simulation.runOut();
  await before();
  await simulation.runOut();
  return simulation.outcome(command);
}

async function ended(simulation: Simulation, answers: readonly unknown[]): Promise<Ended> {
  const { phase, stale, rollouts, restorable } = simulation.state;
  const events = await simulation.control();
  const cuts = events.flatMap(({ event }) => (event.type === "checkpoint.committed" ? [cutOf(event)] : []));
  return {
    answers,
    phase,
    stale: [...stale],
    marks: [...rollouts],
    restorable: placeless([...restorable.values()]),
    cuts,
    closed: simulation.processes.map(({ options: { role, worker }, gate }) => [
      role,
      worker,
      gate.closed?.checkpointId,
    ]),
    story: await simulation.story(),
  };
}

function cutOf({ data }: Extract<ControlEvent, { type: "checkpoint.committed" }>): unknown {
  return placeless({ id: data.checkpointId, scope: data.scope, holdings: data.holdings });
}

const places = new Set(["command", "sequence", "capturedSequence", "cut", "anchor", "incarnation", "sinceMs"]);

/** `value` without positions in the log, also where words name them. */
function placeless(value: unknown): unknown {
  const text = JSON.stringify(value, (name, part: unknown) => {
    if (places.has(name)) return "somewhere";
    return name === "message" && typeof part === "string" ? part.replaceAll(/\d+/g, "n") : part;
  });
  const parsed: unknown = JSON.parse(text);
  return parsed;
}
