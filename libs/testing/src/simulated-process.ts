/** A participant's process without a process: it obeys its gate, and answers as it is told. For tests of the control plane. */
import {
  answered,
  type Ask,
  evolveGate,
  initialGate,
  leaseExpired,
  obligationsOf,
  type ParticipantGate,
} from "@holdpoint/checkpoint";
import {
  decodeEvents,
  encodeEvents,
  type EventLog,
  eventSchema,
  type Recorded,
  type StoredMessage,
} from "@holdpoint/eventsourcing";
import {
  ControlEvent,
  controlSubject,
  type Edges,
  type Episode,
  type Event,
  logSubject,
  type Mode,
  ParticipantEvent,
  resultSubject,
  type Role,
} from "@holdpoint/schemas";
import { createHash } from "node:crypto";

/** A session that it holds, and what it says of its edges. */
export interface SimulatedSession extends Episode {
  readonly edges?: Edges;
}

type AnswerData = Extract<ParticipantEvent, { type: "participant.answered" }>["data"];
export type SimulatedReply = Partial<AnswerData>;

/** What a process answers to an ask instead of its default; undefined: it stays silent. */
export type SimulatedBehaviour = (ask: Ask, process: SimulatedProcess) => SimulatedReply | undefined;

const controlEvents = eventSchema(ControlEvent);
const participantEvents = eventSchema(ParticipantEvent);

/** SHA-256 of a text, as digests in the log are. */
export function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

export interface SimulatedProcessOptions {
  readonly role: Role;
  readonly instance: string;
  readonly worker: string;
  readonly mode: Mode;
  /** Where it serves outside NATS. */
  readonly endpoint?: string;
}

export class SimulatedProcess {
  readonly options: SimulatedProcessOptions;
  readonly subject: string;
  readonly #run: string;
  readonly #log: EventLog;
  gate: ParticipantGate;
  incarnation = 0;
  end = 0;
  /** The sequence of its announcement: everything up to it, it has folded by itself. */
  startedAt = 0;
  fenced = false;
  dead = false;
  sessions: SimulatedSession[] = [];
  restarts: Episode[] = [];
  behaviour: Partial<Record<Ask["operation"], SimulatedBehaviour>> = {};
  /** Called before and after each append with its number, over all lives; true: the process is killed there. */
  killedAt: (moment: "before" | "after", append: number) => boolean = () => false;
  appends = 0;
  /** Every ask that was obeyed, in order. */
  readonly obeyed: Ask[] = [];
  #number = 0;

  constructor(run: string, log: EventLog, options: SimulatedProcessOptions) {
    this.#run = run;
    this.#log = log;
    this.options = options;
    this.subject = logSubject(run, options);
    this.gate = initialGate(options.role);
  }

  /** The log subject of a worker of the same instance. */
  subjectOf(worker: string): string {
    return logSubject(this.#run, { ...this.options, worker });
  }

  /** Begins a life: fences the one before, and folds control and its own answers again. */
  async start(): Promise<void> {
    this.incarnation += 1;
    this.fenced = false;
    this.dead = false;
    this.end = (await this.#log.lastOn(this.subject))?.sequence ?? 0;
    const { mode, role, endpoint = null } = this.options;
    await this.say({ type: "participant.announced", data: { mode, endpoint, lastAtMs: null } });
    this.gate = initialGate(role);
    const subjects = [controlSubject(this.#run), this.subject];
    this.startedAt = this.end;
    await this.#log.read({ upTo: this.end, subjects }, (message) => this.#replay(message));
  }

  kill(): void {
    this.dead = true;
  }

  /** Its own clock says that the lease of what is open here is over; false where nothing is, or it cannot say so. */
  async expire(): Promise<boolean> {
    const { closed } = this.gate;
    if (this.dead || this.fenced || closed === undefined) return false;
    const { checkpointId } = closed;
    if (!(await this.say({ type: "lease.expired", data: { checkpointId } }))) return false;
    this.gate = leaseExpired(this.gate, checkpointId);
    return true;
  }

  async leave(): Promise<void> {
    await this.say({ type: "participant.left", data: {} });
    this.dead = true;
  }

  /** Appends to its own log; a refused append means that it is fenced. */
  async say(...events: readonly Event[]): Promise<boolean> {
    return this.#append(this.subject, events);
  }

  /** Appends to its result subject, under the fence of its log. */
  async result(...events: readonly Event[]): Promise<boolean> {
    const { role, instance, worker } = this.options;
    return this.#append(resultSubject(this.#run, { role, instance, worker }), events);
  }

  async #append(subject: string, events: readonly Event[]): Promise<boolean> {
    this.#number += 1;
    this.appends += 1;
    if (this.#dies("before")) return false;
    const incarnation = `${this.options.instance}-${this.incarnation}`;
    const messageId = `${this.subject}-${this.incarnation}-${this.#number}`;
    const expected = { subject: this.subject, sequence: this.end };
    const done = await this.#log.append({ subject, messageId, expected, ...encodeEvents(incarnation, events) });
    if (!done.stored) this.fenced = true;
    else if (subject === this.subject) this.end = done.sequence;
    return !this.#dies("after") && done.stored;
  }

  #dies(moment: "before" | "after"): boolean {
    const dies = this.killedAt(moment, this.appends);
    if (dies) this.dead = true;
    return dies;
  }

  /** Folds what control says. */
  see(events: readonly Recorded<ControlEvent>[]): void {
    for (const recorded of events) this.gate = evolveGate(this.gate, recorded);
  }

  #replay(message: StoredMessage): void {
    if (message.subject === controlSubject(this.#run)) this.see(decodeEvents(message, controlEvents).events);
    else for (const { event } of decodeEvents(message, participantEvents).events) this.#heard(event);
  }

  #heard(event: ParticipantEvent): void {
    if (event.type === "lease.expired") this.gate = leaseExpired(this.gate, event.data.checkpointId);
    if (event.type === "participant.answered") this.gate = answered(this.gate, event.data);
  }

  /** Obeys the next ask that it does not meet with silence; false where there is none. */
  async obey(): Promise<boolean> {
    if (this.dead || this.fenced) return false;
    for (const { sequence, ask } of obligationsOf(this.gate)) {
      const reply = (this.behaviour[ask.operation] ?? defaultReply)(ask, this);
      if (reply === undefined) continue;
      const { operation, checkpointId } = ask;
      const data = { asked: sequence, operation, checkpointId, ...reply };
      if (operation === "capture" && reply.problem === undefined) await this.#capture(ask);
      if (this.dead) return true;
      this.obeyed.push(ask);
      if (await this.say({ type: "participant.answered", data })) this.#heard({ type: "participant.answered", data });
      return true;
    }
    return false;
  }

  async #capture({ scope = [], checkpointId }: Ask): Promise<void> {
    const events = this.inScope(scope).map(({ rollout, attempt, edges = {} }) => {
      const data = { rollout, attempt, checkpointId, digest: digest(`${rollout}${attempt}`), edges };
      return { type: "session.captured", data };
    });
    if (events.length > 0) await this.say(...events);
  }

  inScope(scope: readonly Episode[]): readonly SimulatedSession[] {
    return this.sessions.filter((session) => {
      return scope.some(({ rollout, attempt }) => rollout === session.rollout && attempt === session.attempt);
    });
  }
}

const replies: Partial<Record<Ask["operation"], SimulatedBehaviour>> = {
  prepare: (_ask, { sessions, restarts }) => {
    const continued = sessions.map(({ rollout, attempt }) => ({ rollout, attempt }));
    return { blockers: [], blockerCount: 0, restarts, continued };
  },
  capture: ({ scope = [] }, process) => {
    const { length } = process.inScope(scope);
    return { digest: digest(`held by ${process.subject}`), sessions: length };
  },
  restore: ({ assignments = [], adoptions = [] }, process) => {
    const { role, instance, worker } = process.options;
    const mine = adoptions.filter((one) => one.role === role && one.instance === instance && one.worker === worker);
    const adopted = mine.map(({ of }) => ({ worker: of, digest: digest(`held by ${process.subjectOf(of)}`) }));
    const installed = assignments.map(({ rollout, to: attempt }) => ({ rollout, attempt }));
    return { digest: digest(`held by ${process.subject}`), installed, ...(adopted.length > 0 && { adopted }) };
  },
};

function defaultReply(ask: Ask, process: SimulatedProcess): SimulatedReply | undefined {
  return (replies[ask.operation] ?? (() => ({})))(ask, process);
}
