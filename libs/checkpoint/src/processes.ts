/**
 * Who takes part. A process announces itself on its own log; the coordinator repeats that on `control`, from where the others
 * learn incarnations and endpoints, and from where on it is expected, until it leaves.
 */
import type { ControlEvent, Mode, ParticipantStatus, Role, Writer } from "@holdpoint/schemas";
import { logSubject, roles } from "@holdpoint/schemas";
import type { DataOf, Handlers } from "./handlers.ts";
import type { LogEvent } from "./input.ts";
import type { Recorded } from "@holdpoint/eventsourcing";
import type { CoordinatorState, Process } from "./state.ts";

/** What names a process among all: one subject, one writer (L1). */
export function processKey({ role, instance, worker }: Writer): string {
  return `${role}.${instance}.${worker}`;
}

/** The end of a process' log subject, as far as it is read. */
export function endOf(state: CoordinatorState, process: Process): number {
  return state.ends.get(logSubject(state.run, process)) ?? 0;
}

/** The processes of `of` that must answer, in the order in which they announced themselves first. */
export function expectedOf({ processes }: CoordinatorState, of: readonly Role[] = roles): readonly Process[] {
  return [...processes.values()].filter(({ expected, role }) => expected && of.includes(role));
}

/** How many instances of the policy model are expected. */
export function modelCount(state: CoordinatorState): number {
  return new Set(expectedOf(state, ["model"]).map(({ instance }) => instance)).size;
}

/** The fold of what processes say about themselves. */
export function processSaid(
  state: CoordinatorState,
  writer: Writer & { readonly role: Role },
  { event, sequence, timeMs, incarnation }: Recorded<LogEvent>,
): CoordinatorState {
  const key = processKey(writer);
  const known = state.processes.get(key);
  if (event.type === "participant.announced") {
    const { mode, endpoint, lastAtMs } = event.data;
    const { expected = false, joinedSequence = 0, fencedAt = 0 } = known ?? {};
    const announced = { announcedSequence: sequence, announcedAtMs: timeMs, lastAtMs };
    const past = { expected, joinedSequence, fencedAt, leaving: false };
    state.processes.set(key, { ...writer, key, incarnation, mode, endpoint, ...announced, ...past });
    state.unmirrored.add(key);
  }
  if (event.type === "participant.left" && known !== undefined) {
    state.processes.set(key, { ...known, leaving: true });
    state.unmirrored.add(key);
  }
  if (event.type === "participant.fenced" && known !== undefined) {
    state.processes.set(key, { ...known, fencedAt: sequence });
  }
  return state;
}

/** It is expected no more, until it announces itself anew. */
function gone(state: CoordinatorState, data: Writer): CoordinatorState {
  const key = processKey(data);
  const known = state.processes.get(key);
  if (known === undefined) return state;
  state.processes.set(key, { ...known, expected: false, leaving: false });
  if (known.joinedSequence === known.announcedSequence) state.unmirrored.delete(key);
  return state;
}

export const processHandlers: Handlers<CoordinatorState> = {
  "participant.joined": (state, data) => {
    const key = processKey(data);
    const known = state.processes.get(key);
    const { announcedSequence } = data;
    if (known === undefined || known.announcedSequence > announcedSequence) return state;
    state.processes.set(key, { ...known, expected: true, joinedSequence: announcedSequence });
    if (!known.leaving) state.unmirrored.delete(key);
    return state;
  },
  "participant.left": gone,
  "participant.removed": gone,
};

/** The most processes repeated at once; the rest follows. */
const mirroredAtOnce = 100;

/** What `control` has to repeat of announcements and goodbyes; empty where it is up to date. */
export function mirrorEvents({ processes, unmirrored }: CoordinatorState): readonly ControlEvent[] {
  return [...unmirrored].slice(0, mirroredAtOnce).flatMap((key) => {
    const process = processes.get(key);
    return process === undefined ? [] : mirrored(process);
  });
}

function mirrored(process: Process): readonly ControlEvent[] {
  const { role, instance, worker, leaving, joinedSequence, announcedSequence } = process;
  const events: ControlEvent[] = [];
  if (joinedSequence < announcedSequence) events.push({ type: "participant.joined", data: joinedData(process) });
  if (leaving) events.push({ type: "participant.left", data: { role, instance, worker } });
  return events;
}

function joinedData(process: Process): DataOf<"participant.joined"> {
  const { role, instance, worker, incarnation, mode, endpoint } = process;
  const { announcedSequence, announcedAtMs, lastAtMs } = process;
  return { role, instance, worker, incarnation, mode, endpoint, announcedSequence, announcedAtMs, lastAtMs };
}

/** The expected participants for status and discover: one entry for each instance. */
export function participantStatuses(state: CoordinatorState): ParticipantStatus[] {
  const statuses = new Map<string, ParticipantStatus>();
  for (const { role, instance, worker, incarnation, mode, endpoint } of expectedOf(state)) {
    const known = statuses.get(`${role}.${instance}`);
    const workers = [...(known?.workers ?? []), { worker, incarnation }];
    const weakest = known === undefined ? mode : weaker(known.mode, mode);
    statuses.set(`${role}.${instance}`, {
      role,
      instance,
      workers,
      mode: weakest,
      endpoint: known?.endpoint ?? endpoint,
    });
  }
  return [...statuses.values()];
}

/** An instance is as checkpointable as its weakest worker. */
function weaker(one: Mode, other: Mode): Mode {
  const order: readonly Mode[] = ["restart_only", "stateless", "exported"];
  return order.find((mode) => mode === one || mode === other) ?? "restart_only";
}
