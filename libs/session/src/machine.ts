/**
 * The lifecycle of a session, defined once.
 *
 * `work` is where its work stands; `capture` whether a checkpoint can hold it. A restart session runs, ends and closes like
 * any other, it is only never parked, waited for or exported; so nobody emits `session.parked` for it.
 *
 * The machine's events are the types of the events in the log. `evolve` looks the next state up in a table that is computed
 * from the machine when this module loads; XState itself is too slow to fold a long history with.
 */
import { createMachine, initialTransition, transition } from "xstate";

export const sessionMachine = createMachine({
  id: "session",
  type: "parallel",
  states: {
    work: {
      initial: "idle",
      on: { "session.closed": ".closed", "session.retired": ".closed" },
      states: {
        /** Seeded, no activation: counts as at a boundary. */
        idle: { on: { "activation.started": "running", "session.parked": "parked" } },
        running: {
          on: { "call.requested": "at_boundary", "session.parked": "parked", "activation.ended": "idle" },
        },
        /** Awaits a model response, or is about to ask for one. */
        at_boundary: {
          on: {
            "activation.started": "running",
            "call.received": "running",
            "tool.returned": "running",
            "session.parked": "parked",
            "activation.ended": "idle",
          },
        },
        /** A checkpoint is open and the work stands at a boundary until it is let go on. */
        parked: { on: { "session.unparked": "at_boundary" } },
        closed: {},
      },
    },
    capture: {
      initial: "possible",
      states: { possible: { on: { "session.restart_marked": "restart" } }, restart: {} },
    },
  },
});

const open = ["idle", "running", "at_boundary", "parked"] as const;

export type Work = (typeof open)[number] | "closed";

export interface SessionStatus {
  readonly work: Work;
  readonly restart: boolean;
}

type Snapshot = ReturnType<typeof initialTransition<typeof sessionMachine>>[0];

interface Entry {
  readonly status: SessionStatus;
  readonly next: ReadonlyMap<string, Entry>;
}

function statusOf(snapshot: Snapshot): SessionStatus {
  const work = open.find((name) => snapshot.matches({ work: name })) ?? "closed";
  return { work, restart: snapshot.matches({ capture: "restart" }) };
}

function nameOf({ work, restart }: SessionStatus): string {
  return restart ? `${work}+restart` : work;
}

/** Every reachable state with where each move leads, found by stepping the machine through each pair once. */
function tabulate(): { readonly start: Entry; readonly entries: ReadonlyMap<string, Entry> } {
  const entries = new Map<string, Entry>();
  const visit = (snapshot: Snapshot): Entry => {
    const status = statusOf(snapshot);
    const known = entries.get(nameOf(status));
    if (known !== undefined) return known;
    const next = new Map<string, Entry>();
    const entry = { status, next };
    entries.set(nameOf(status), entry);
    for (const type of sessionMachine.events) next.set(type, visit(transition(sessionMachine, snapshot, { type })[0]));
    return entry;
  };
  const [initial] = initialTransition(sessionMachine);
  return { start: visit(initial), entries };
}

const { start, entries } = tabulate();

export const initialStatus: SessionStatus = start.status;

/** The status after an event of this type; types that move no session leave it as it is. */
export function moved(status: SessionStatus, type: string): SessionStatus {
  return entries.get(nameOf(status))?.next.get(type)?.status ?? status;
}

/** Whether a checkpoint may be taken with the session where it is. */
export function isAtBoundary({ work, restart }: SessionStatus): boolean {
  return restart || work !== "running";
}

function named({ next }: Entry): ReadonlyMap<string, string> {
  return new Map([...next].map(([move, entry]) => [move, nameOf(entry.status)]));
}

/** The table: each status by name, with the name that each move leads to. Printed into the docs. */
export function sessionTable(): ReadonlyMap<string, ReadonlyMap<string, string>> {
  return new Map([...entries].map(([key, entry]) => [key, named(entry)]));
}
