/**
 * What may never happen, written out, told event by event as the log stores it. Independent of the deciders: it keeps its own books.
 *
 *  R1 at most one checkpoint, or restore, is open;
 *  R2 an id that was resumed is never opened, prepared, captured, committed or asked for again;
 *  R3 nothing is captured or committed that names what somebody answered as a restart;
 *  R4 a release drops nothing that it names as kept, keeps nothing that is gone, and tells nobody to free what stays;
 *  R5 an attempt that is refused is in no cut, an attempt is assigned once, and who was fenced is not heard;
 *  R6 a cut names every expected process, and none of them has said anything since it had captured (L4).
 */
import type { CoordinatorState } from "@holdpoint/checkpoint";
import type { NewEvent } from "@holdpoint/eventsourcing";
import { type ControlEvent, Episode, logSubject, type Writer } from "@holdpoint/schemas";
import * as z from "zod";

export interface Ghost {
  readonly open: string[];
  readonly stale: Set<string>;
  /** By id, whatever anybody answered as a restart. */
  readonly restarts: Map<string, Set<string>>;
  readonly marks: Map<string, number>;
  readonly highest: Map<string, number>;
  /** Committed, and not dropped. */
  readonly kept: Set<string>;
  readonly removed: Set<string>;
  readonly faults: string[];
}

export function newGhost(): Ghost {
  return {
    open: [],
    stale: new Set(),
    restarts: new Map(),
    marks: new Map(),
    highest: new Map(),
    kept: new Set(),
    removed: new Set(),
    faults: [],
  };
}

type Data<T extends ControlEvent["type"]> = Extract<ControlEvent, { type: T }>["data"];

const opening = new Set(["checkpoint.opened", "checkpoint.prepared", "checkpoint.captured", "checkpoint.committed"]);

/** Takes note of an event on control, and of what is wrong with it. */
export function watchControl(ghost: Ghost, state: CoordinatorState, event: ControlEvent): void {
  if (opening.has(event.type) && "checkpointId" in event.data)
    revived(ghost, event.type, event.data.checkpointId ?? "");
  switch (event.type) {
    case "checkpoint.opened":
      if (ghost.open.length > 0)
        ghost.faults.push(`R1: ${event.data.checkpointId} was opened while ${ghost.open[0]} was`);
      ghost.open.push(event.data.checkpointId);
      break;
    case "checkpoint.resumed":
      ghost.stale.add(event.data.checkpointId);
      if (ghost.open.includes(event.data.checkpointId))
        ghost.open.splice(ghost.open.indexOf(event.data.checkpointId), 1);
      break;
    case "checkpoint.captured":
      named(ghost, event.data);
      fixed(ghost, state, event.data);
      break;
    case "checkpoint.committed":
      named(ghost, event.data);
      ghost.kept.add(event.data.checkpointId);
      break;
    default:
      watchOthers(ghost, state, event);
  }
}

function watchOthers(ghost: Ghost, { run }: CoordinatorState, event: ControlEvent): void {
  switch (event.type) {
    case "participants.asked":
      asked(ghost, event.data);
      break;
    case "checkpoint.releasing":
      releasing(ghost, event.data);
      break;
    case "restore.started":
      started(ghost, event.data);
      break;
    case "rollouts.marked":
      for (const { rollout, attempt } of event.data.rollouts) raise(ghost.marks, rollout, attempt);
      break;
    case "rollouts.forgotten":
      for (const rollout of event.data.rollouts) for (const book of [ghost.marks, ghost.highest]) book.delete(rollout);
      break;
    case "participant.removed":
      ghost.removed.add(logSubject(run, event.data));
      break;
    default:
  }
}

function revived({ stale, faults }: Ghost, what: string, id: string): void {
  if (stale.has(id)) faults.push(`R2: ${what} of ${id}, which was resumed`);
}

const forOpenOnly = new Set(["prepare", "capture", "proceed", "commit", "restore"]);

function asked(ghost: Ghost, { operation, checkpointId, kept }: Data<"participants.asked">): void {
  if (forOpenOnly.has(operation)) revived(ghost, `the ask to ${operation}`, checkpointId ?? "");
  const lost = [...ghost.kept].filter((id) => operation === "release" && kept?.includes(id) !== true);
  if (lost.length > 0) ghost.faults.push(`R4: a release tells to free ${lost.join()}, which was not dropped`);
}

function releasing(ghost: Ghost, { kept, dropped }: Data<"checkpoint.releasing">): void {
  const both = dropped.filter((id) => kept.includes(id));
  if (both.length > 0) ghost.faults.push(`R4: a release drops ${both.join()}, and names it as kept`);
  const gone = kept.filter((id) => !ghost.kept.has(id));
  if (gone.length > 0) ghost.faults.push(`R4: a release keeps ${gone.join()}, which is gone`);
  for (const id of dropped) ghost.kept.delete(id);
}

function started(ghost: Ghost, { source, assignments }: Data<"restore.started">): void {
  if (!ghost.kept.has(source)) ghost.faults.push(`R4: a restore of ${source}, which is not kept`);
  for (const { rollout, to } of assignments) {
    const highest = Math.max(ghost.highest.get(rollout) ?? 0, ghost.marks.get(rollout) ?? 0);
    if (to <= highest) ghost.faults.push(`R5: ${rollout} attempt ${to} is not new`);
    raise(ghost.highest, rollout, to);
  }
}

/** What a cut says of its episodes. */
function named(ghost: Ghost, { checkpointId, scope }: { checkpointId: string; scope: readonly Episode[] }): void {
  for (const { rollout, attempt } of scope) {
    const name = `${rollout} attempt ${attempt}`;
    if (ghost.restarts.get(checkpointId)?.has(name) === true)
      ghost.faults.push(`R3: ${checkpointId} names ${name}, a restart`);
    if (attempt <= (ghost.marks.get(rollout) ?? -1))
      ghost.faults.push(`R5: ${checkpointId} names ${name}, which is refused`);
  }
}

function fixed(ghost: Ghost, state: CoordinatorState, { checkpointId, holdings }: Data<"checkpoint.captured">): void {
  const { run } = state;
  const expected = [...state.processes.values()].filter((process) => process.expected);
  const isHeld = (process: Writer) => holdings.some((holding) => logSubject(run, holding) === logSubject(run, process));
  const absent = expected.filter((process) => !isHeld(process));
  if (absent.length > 0)
    ghost.faults.push(`R6: the cut of ${checkpointId} misses ${absent.map(({ key }) => key).join()}`);
  const moved = holdings.filter((holding) => state.ends.get(logSubject(run, holding)) !== holding.capturedSequence);
  if (moved.length > 0) ghost.faults.push(`R6: ${moved[0]?.instance} went on before the cut of ${checkpointId}`);
}

/** Takes note of what the process of `subject` has said, once it is in the log. */
export function watchAppend(ghost: Ghost, subject: string, events: readonly NewEvent[]): void {
  if (events.some(({ type }) => type === "participant.announced")) ghost.removed.delete(subject);
  if (ghost.removed.has(subject)) ghost.faults.push(`R5: ${subject} was fenced, and is heard`);
  for (const event of events) {
    const { data } = answers.safeParse(event);
    if (data === undefined || data.data.restarts.length === 0) continue;
    const { checkpointId, restarts } = data.data;
    const known = ghost.restarts.get(checkpointId) ?? new Set();
    for (const { rollout, attempt } of restarts) known.add(`${rollout} attempt ${attempt}`);
    ghost.restarts.set(checkpointId, known);
  }
}

/** What a process answers to a prepare. */
const answers = z.object({
  type: z.literal("participant.answered"),
  data: z.object({ operation: z.literal("prepare"), checkpointId: z.string(), restarts: z.array(Episode).default([]) }),
});

function raise(book: Map<string, number>, rollout: string, attempt: number): void {
  book.set(rollout, Math.max(attempt, book.get(rollout) ?? -1));
}
