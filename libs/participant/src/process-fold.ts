/**
 * What one process holds, folded from `control` and from its own subjects in stream order: its gate, its sessions, who takes part.
 *
 * The same fold rebuilds it after a crash, with or without a snapshot to begin with (L14).
 */
import {
  answered,
  evolveGate,
  type GivenAnswer,
  initialGate,
  leaseExpired,
  type ParticipantGate,
} from "@holdpoint/checkpoint";
import { decodeEvents, type Recorded, type StoredMessage } from "@holdpoint/eventsourcing";
import { controlSubject, logSubject, resultSubject } from "@holdpoint/schemas";
import { type SessionEvent, SessionFold } from "@holdpoint/session";
import { controlView } from "./control-view.ts";
import { Directory } from "./directory.ts";
import { type FoldSnapshot, snapshotVersion } from "./fold-snapshot.ts";
import type { ParticipantOptions } from "./participant-options.ts";
import type { LogEvent, RoleSpec } from "./role-spec.ts";
import { StreamClock } from "./stream-clock.ts";

/** The subjects that one process reads from, and the name of its place among the writers. */
export interface OwnSubjects {
  readonly control: string;
  readonly log: string;
  readonly result: string;
  readonly name: string;
}

export function ownSubjects(
  { run, instance, worker }: Pick<ParticipantOptions, "run" | "instance" | "worker">,
  role: RoleSpec<never, never>["role"],
): OwnSubjects {
  const writer = { role, instance, worker };
  return {
    control: controlSubject(run),
    log: logSubject(run, writer),
    result: resultSubject(run, writer),
    name: `${role}.${instance}.${worker}`,
  };
}

export class ProcessFold<State, Own extends SessionEvent> {
  readonly directory = new Directory();
  readonly sessions: SessionFold<State, LogEvent<Own>>;
  readonly clock: StreamClock;
  /**
   * When nobody worked, as this process itself knows: the broker was away, or there was none of its own lives. Stream time, epoch
   * milliseconds. Of the others' lives the directory knows.
   */
  readonly outages: { readonly fromMs: number; readonly toMs: number }[] = [];
  /** Messages that were folded one by one. */
  replayed = 0;
  readonly #spec: RoleSpec<State, Own>;
  readonly #subjects: OwnSubjects;
  readonly #options: Pick<ParticipantOptions, "trouble">;
  readonly #gateChanged: (before: ParticipantGate, after: ParticipantGate) => void;
  #gate: ParticipantGate;

  constructor(
    spec: RoleSpec<State, Own>,
    subjects: OwnSubjects,
    options: Pick<ParticipantOptions, "clock" | "trouble">,
    gateChanged: (before: ParticipantGate, after: ParticipantGate) => void,
  ) {
    this.#spec = spec;
    this.#subjects = subjects;
    this.#options = options;
    this.#gateChanged = gateChanged;
    this.#gate = initialGate(spec.role);
    this.sessions = new SessionFold(spec.kind);
    this.clock = new StreamClock(options.clock);
  }

  get gate(): ParticipantGate {
    return this.#gate;
  }

  /** A message as a replay of the stream gives it. */
  replay(message: StoredMessage): void {
    this.replayed += 1;
    if (message.subject === this.#subjects.control) return this.applyControl(message);
    this.clock.see(message.timeMs);
    const { events, problems } = decodeEvents(message, this.#spec.schema);
    for (const problem of problems) this.#options.trouble(problem);
    for (const recorded of events) this.apply(recorded);
  }

  applyControl(message: StoredMessage): void {
    this.clock.see(message.timeMs);
    const { events, problems } = decodeEvents(message, controlView);
    for (const problem of problems) this.#options.trouble(problem);
    for (const recorded of events) {
      this.sessions.applyControl(recorded);
      this.directory.apply(recorded);
      this.#setGate(evolveGate(this.#gate, recorded));
    }
  }

  /** An event of the process itself. */
  apply(recorded: Recorded<LogEvent<Own>>): void {
    this.sessions.apply(recorded);
    const { type, data } = recorded.event;
    if (type === "lease.expired") this.#setGate(leaseExpired(this.#gate, checkpointOf(data)));
    if (type === "participant.answered") this.#setGate(answered(this.#gate, answerOf(data)));
    if (type !== "participant.reconnected" && type !== "participant.announced") return;
    const fromMs = lastAtOf(data);
    if (fromMs !== undefined) this.outages.push({ fromMs, toMs: recorded.timeMs });
  }

  /** Everything it holds, where every event up to `upTo` has been applied. */
  save(upTo: number): FoldSnapshot<State> {
    return {
      version: snapshotVersion,
      name: this.#subjects.name,
      upTo,
      gate: this.#gate,
      directory: this.directory.save(),
      sessions: this.sessions.save(),
      outages: this.outages,
      latestMs: this.clock.latestMs,
    };
  }

  /** Takes over a snapshot; for a fold that has applied nothing. */
  load({ gate, directory, sessions, outages, latestMs }: FoldSnapshot<State>): void {
    this.#gate = gate;
    this.directory.load(directory);
    this.sessions.load(sessions);
    this.outages.push(...outages);
    this.clock.see(latestMs);
  }

  #setGate(next: ParticipantGate): void {
    const before = this.#gate;
    this.#gate = next;
    if (before !== next) this.#gateChanged(before, next);
  }
}

function answerOf(data: { readonly asked?: unknown; readonly problem?: unknown }): GivenAnswer {
  return { asked: typeof data.asked === "number" ? data.asked : 0, problem: data.problem };
}

function checkpointOf(data: { readonly checkpointId?: unknown }): string {
  return typeof data.checkpointId === "string" ? data.checkpointId : "";
}

/** undefined: it was the first life. */
function lastAtOf(data: { readonly lastAtMs?: unknown }): number | undefined {
  return typeof data.lastAtMs === "number" ? data.lastAtMs : undefined;
}
