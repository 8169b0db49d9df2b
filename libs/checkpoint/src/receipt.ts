/**
 * The receipt of a restore: for each process what the checkpoint says of it, what it found, and what became of each rollout. It is
 * written whether the restore succeeded or not; an incomplete restore is refused unless it was asked for.
 */
import type { Assignment, Episode, ReceiptEntry } from "@holdpoint/schemas";
import { answersTo } from "./asks.ts";
import { emptyDigest } from "./capture.ts";
import { distinct, episodeKey, type OrderOf } from "./orders.ts";
import { expectedOf, processKey } from "./processes.ts";
import type { Answer, CoordinatorState, Op, Open, Process, Restorable } from "./state.ts";

/** The restore that `op` is, or was before it resumed. */
function restoreOf(state: CoordinatorState, op: Op): Open["restore"] {
  return op.past?.restore ?? state.open?.restore;
}

function sourceOf(state: CoordinatorState, op: Op): Restorable | undefined {
  return state.restorable.get(restoreOf(state, op)?.source ?? "");
}

function replacements(assignments: readonly Assignment[]): readonly Episode[] {
  return assignments.map(({ rollout, to: attempt }) => ({ rollout, attempt }));
}

/** The most episodes that a receipt names as continued; above it names only those of the environment, and counts the others. */
const maxNamedContinued = 10_000;

export function receiptOf(state: CoordinatorState, op: Op): ReceiptEntry[] {
  const answers = answersByProcess(state, op);
  const leftOut = [...notAsked(state, op), ...nowhere(state, op), ...notHeld(state, op)];
  const count = [...answers.values()].reduce((sum, { installed }) => sum + installed.length, 0);
  const own = expectedOf(state).map((process): ReceiptEntry => {
    const { role, instance, worker, key } = process;
    const answer = answers.get(key);
    const expected = expectedDigest(state, op, process);
    const found = answer?.problem === undefined ? foundDigest(answer) : null;
    const digests = { role, instance, worker, expected, found, restarted: [...(answer?.restarts ?? [])] };
    const continued = [...(answer?.installed ?? [])];
    if (count <= maxNamedContinued || role === "environment") return { ...digests, continued, leftOut };
    return { ...digests, continued: [], continuedCount: continued.length, leftOut: [] };
  });
  return [...own, ...adopted(state, op, answers)];
}

/** What workers held that are not there any more, as those found it who took it over; their own entries name what goes on. */
function adopted(state: CoordinatorState, op: Op, answers: ReadonlyMap<string, Answer>): ReceiptEntry[] {
  const nothing = { continued: [], restarted: [], leftOut: [] };
  return (restoreOf(state, op)?.adoptions ?? []).map(({ role, instance, worker: adoptedBy, of: worker }) => {
    const answer = answers.get(processKey({ role, instance, worker: adoptedBy }));
    const found = answer?.adopted.find((taken) => taken.worker === worker)?.digest ?? null;
    const expected = expectedDigest(state, op, { key: processKey({ role, instance, worker }) });
    return { role, instance, worker, adoptedBy, expected, found, ...nothing };
  });
}

function answersByProcess(state: CoordinatorState, op: Op): ReadonlyMap<string, Answer> {
  return new Map(answersTo(state, op, "restore").map(({ process: { key }, answer }) => [key, answer]));
}

const missing = "no participant installed it";

/** The attempts of a restore that nobody installed, nor said to start over. */
export function missingIn(state: CoordinatorState, op: Op): Episode[] {
  const accounted = accountedIn(answersByProcess(state, op));
  const wanted = replacements(restoreOf(state, op)?.assignments ?? []);
  return wanted.filter((episode) => !accounted.has(episodeKey(episode)));
}

function nowhere(state: CoordinatorState, op: Op): ReceiptEntry["leftOut"] {
  return missingIn(state, op).map((episode) => ({ ...episode, why: missing }));
}

/** The episodes that somebody installed, or said to start over. */
function accountedIn(answers: ReadonlyMap<string, Answer>): ReadonlySet<string> {
  return new Set(
    [...answers.values()].flatMap(({ installed, restarts }) => [...installed, ...restarts]).map(episodeKey),
  );
}

/** Rollouts of the checkpoint that the restore does not name. */
function notAsked(state: CoordinatorState, op: Op): ReceiptEntry["leftOut"] {
  const asked = new Set(restoreOf(state, op)?.assignments.map(({ rollout }) => rollout));
  return (sourceOf(state, op)?.scope ?? [])
    .filter(({ rollout }) => !asked.has(rollout))
    .map(({ rollout, attempt }) => ({ rollout, attempt, why: "not in the scope of this restore" }));
}

/** Rollouts that the restore names and the checkpoint does not hold. */
function notHeld(state: CoordinatorState, { order, ...op }: Op): ReceiptEntry["leftOut"] {
  if (order.operation !== "restore" || order.scope === undefined) return [];
  const held = new Set(sourceOf(state, { order, ...op })?.scope.map(({ rollout }) => rollout));
  return order.scope
    .filter((rollout) => !held.has(rollout))
    .map((rollout) => ({ rollout, attempt: 0, why: "not in the checkpoint" }));
}

function expectedDigest(state: CoordinatorState, op: Op, { key }: Pick<Process, "key">): string | null {
  const holding = sourceOf(state, op)?.holdings.find((other) => processKey(other) === key);
  return holding?.digest ?? null;
}

/** A process that answers no digest holds nothing. */
function foundDigest(answer: Answer | undefined): string | null {
  return answer === undefined ? null : (answer.digest ?? emptyDigest);
}

/** Why what was installed is not what the checkpoint names; empty where it is, or where an incomplete restore was asked for. */
export function incompleteness(state: CoordinatorState, op: Op, { allowIncomplete }: OrderOf<"restore">): string[] {
  const receipt = receiptOf(state, op);
  const differing = receipt
    .filter(({ expected, found }) => expected !== null && expected !== found)
    .map((entry) => `${processKey(entry)} should hold ${entry.expected} and found ${entry.found ?? "nothing"}`);
  if (allowIncomplete === true) return differing;
  const lost = missingIn(state, op).map(({ rollout, attempt }) => `${rollout} attempt ${attempt}: ${missing}`);
  return [...differing, ...lost];
}

/** Attempts that a participant cannot go on with: they start over from their input. */
export function restartsIn(receipt: readonly ReceiptEntry[]): Episode[] {
  return distinct(receipt.flatMap(({ restarted }) => restarted));
}
