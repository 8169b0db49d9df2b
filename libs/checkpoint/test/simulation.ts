/** A whole run in memory: the stream, a coordinator that may be killed at any point, and participants that obey. */
import {
  advance,
  anchorOf,
  type CoordinatorState,
  type Decision,
  draftsOf,
  initialState,
  isLeader,
  react,
} from "@holdpoint/checkpoint";
import {
  decodeEvents,
  type Draft,
  encodeEvents,
  eventSchema,
  MemoryLog,
  parseJson,
  type Recorded,
  type StoredMessage,
} from "@holdpoint/eventsourcing";
import { ControlEvent, controlSubject, type Operation, Outcome, outcomeSubject } from "@holdpoint/schemas";
import { expect } from "vitest";
import { digest, type SimulatedProcessOptions, type SimulatedSession, SimulatedProcess } from "@holdpoint/testing";

export const run = "demo";
export const controlEvents = eventSchema(ControlEvent);
const promise = { serverVersion: "2.15.1", syncAlways: true, replicas: 1, persistMode: "default" };

export class Simulation {
  nowMs = 1_000_000;
  leaseGraceMs = 600_000;
  log = new MemoryLog(`HP_${run}`, () => this.nowMs);
  state: CoordinatorState = initialState(run, this.log.stream);
  readonly processes: SimulatedProcess[] = [];
  /** Called after each append of the coordinator with how many there were; true: it is killed there. */
  killAfter: (appends: number) => boolean = () => false;
  /** Called before each append with its number; true: another takes over first, and this one tries all the same. */
  killBefore: (append: number) => boolean = () => false;
  /** Called when a decision to append was made, before it is tried. */
  beforeAppend: (decision: Extract<Decision, { kind: "append" }>) => Promise<void> = async () => {};
  appends = 0;
  /** Whether a process that was killed is started again at once. */
  revives = false;
  #incarnation = 0;
  #number = 0;
  #anchors = new Map<number, string | undefined>();
  #readTo = 0;

  /** Takes over as a coordinator that knows nothing: folds the stream, and fences the one before. */
  async takeOver(): Promise<void> {
    this.#incarnation += 1;
    this.#anchors = new Map();
    this.#readTo = 0;
    this.state = initialState(run, this.log.stream);
    await this.#fold();
    const event = { type: "coordinator.started", data: { incarnation: this.incarnation, promise } };
    const expected = { subject: controlSubject(run), sequence: this.state.controlSequence };
    const messageId = `${this.incarnation}-start`;
    await this.log.append({
      subject: controlSubject(run),
      messageId,
      expected,
      ...encodeEvents(this.incarnation, [event]),
    });
    await this.#fold();
  }

  get incarnation(): string {
    return `coordinator-${this.#incarnation}`;
  }

  async join(
    ...options: readonly (Partial<SimulatedProcessOptions> & Pick<SimulatedProcessOptions, "role">)[]
  ): Promise<SimulatedProcess[]> {
    const joined: SimulatedProcess[] = [];
    for (const option of options) {
      const full = { instance: `${option.role}1`, worker: "0", mode: "exported" as const, ...option };
      const process = new SimulatedProcess(run, this.log, full);
      await process.start();
      this.processes.push(process);
      joined.push(process);
    }
    return joined;
  }

  /** Appends a command, as `nats pub` would; its sequence names it. */
  async command(operation: Operation | (string & {}), body: unknown): Promise<number> {
    return this.raw(`hp.${run}.cmd.${operation}`, typeof body === "string" ? body : JSON.stringify(body));
  }

  /** Appends a message without any expectation that matters. */
  async raw(subject: string, body: string, controlPlane = false): Promise<number> {
    this.#number += 1;
    const expected = { subject: outcomeSubject(run, 0), sequence: 0 };
    const done = await this.log.append({ subject, body, messageId: `raw-${this.#number}`, controlPlane, expected });
    if (!done.stored) throw new Error(`not stored: ${subject}`);
    return done.sequence;
  }

  /** Runs until nobody has anything to do before time passes; gives the instant until which the coordinator waits. */
  async settle(): Promise<number> {
    for (let rounds = 0; rounds < 100_000; rounds++) {
      await this.#fold();
      const decision = this.#decide();
      const obeyed = await this.#obey();
      if (decision.kind !== "wait") await this.#act(decision);
      else if (!obeyed) return decision.untilMs;
    }
    throw new Error("it never settles");
  }

  #decide(): Decision {
    const { state, nowMs, leaseGraceMs } = this;
    return react({ state, nowMs, leaseGraceMs, anchors: this.#anchors });
  }

  async #obey(): Promise<boolean> {
    const before = await this.log.lastSequence();
    for (const process of this.processes) {
      await process.obey();
      if (process.dead && this.revives) await process.start();
    }
    return before !== (await this.log.lastSequence());
  }

  /** Settles, and lets time pass to whatever a command under way waits for, until none is. */
  async runOut(): Promise<void> {
    for (let untilMs = await this.settle(); this.state.ops.size > 0; untilMs = await this.settle()) {
      this.nowMs = Math.max(this.nowMs, untilMs);
    }
  }

  /** Lets time pass up to the end of the lease of what is open, and settles. */
  async outlive(): Promise<void> {
    this.nowMs = Math.max(this.nowMs, this.state.open?.leaseUntilMs ?? 0);
    await this.runOut();
  }

  /** One command, settled. */
  async obeyed(operation: Operation, body: object): Promise<Outcome> {
    const command = await this.command(operation, operation === "status" ? body : { timeoutMs: 30_000, ...body });
    await this.runOut();
    return this.outcome(command);
  }

  /** One command, settled without letting time pass: what else is under way stays so. */
  async obeyedBeside(operation: Operation, body: object): Promise<Outcome> {
    const command = await this.command(operation, { timeoutMs: 30_000, ...body });
    await this.settle();
    return this.outcome(command);
  }

  async #act(decision: Exclude<Decision, { kind: "wait" }>): Promise<void> {
    if (decision.kind === "read") {
      const message = await this.log.get(decision.sequence).catch(() => undefined);
      this.#anchors.set(decision.sequence, message === undefined ? undefined : anchorOf(message, digest));
      return;
    }
    this.#number += 1;
    const drafts = draftsOf(this.state, decision.messages, { incarnation: this.incarnation, number: this.#number });
    await this.beforeAppend(decision);
    if (this.killBefore(this.appends + 1)) return this.#zombie(drafts);
    await this.log.appendBatch(drafts);
    this.#anchors.clear();
    this.appends += 1;
    await this.#fold();
    if (!isLeader(this.state, this.incarnation)) throw new Error("not the leader any more");
    if (this.killAfter(this.appends)) await this.takeOver();
  }

  /** Another leads when this one comes to write: nothing of it may be stored. */
  async #zombie(drafts: readonly Draft[]): Promise<void> {
    this.appends += 1;
    await this.takeOver();
    if ((await this.log.appendBatch(drafts)).stored) throw new Error("a coordinator that was followed could write");
  }

  async #fold(): Promise<void> {
    const upTo = await this.log.lastSequence();
    await this.log.read({ from: this.#readTo + 1, upTo }, (message) => {
      if (message.sequence <= this.#readTo) return;
      this.state = advance(this.state, message);
      if (message.sequence > this.#seenTo && message.subject === controlSubject(run)) this.#show(message);
      this.#readTo = message.sequence;
    });
    this.#seenTo = Math.max(this.#seenTo, upTo);
  }

  #seenTo = 0;

  /** A process that started later has folded by itself what came before. */
  #show(message: StoredMessage): void {
    const { events } = decodeEvents(message, controlEvents);
    for (const process of this.processes) if (message.sequence > process.startedAt) process.see(events);
  }

  /** Everything on control so far, without what the coordinators said of themselves. */
  async control(): Promise<readonly Recorded<ControlEvent>[]> {
    const events: Recorded<ControlEvent>[] = [];
    const upTo = await this.log.lastSequence();
    await this.log.read({ upTo, subjects: [controlSubject(run)] }, (message) => {
      events.push(...decodeEvents(message, controlEvents).events);
    });
    return events.filter(({ event }) => event.type !== "coordinator.started");
  }

  /** The types of what was decided after `sequence`, with the operation of each ask; that leases move goes without saying. */
  async story(after = 0): Promise<readonly string[]> {
    return (await this.control())
      .filter(({ sequence, event }) => sequence > after && event.type !== "lease.moved")
      .map(({ event }) => {
        if (event.type !== "participants.asked") return event.type;
        return `${event.data.operation} ${event.data.roles.join("+")}`;
      });
  }

  async hasOutcome(command: number): Promise<boolean> {
    return (await this.log.lastOn(outcomeSubject(run, command))) !== undefined;
  }

  async outcome(command: number): Promise<Outcome> {
    const message = await this.log.lastOn(outcomeSubject(run, command));
    if (message === undefined) throw new Error(`no outcome of ${command}`);
    const json = parseJson(message.body);
    return Outcome.parse(json.ok ? json.value : undefined);
  }
}

/** Sessions that a run has at the start: two rollouts, held by everybody, with calls at both ends. */
export const twoSessions: readonly SimulatedSession[] = ["r1", "r2"].map((rollout) => {
  const edge = { received: 2, last: digest(rollout) };
  return { rollout, attempt: 0, edges: { calls: edge, tools: edge } };
});

/** A run with one participant of each role, which hold two sessions. */
export async function startedRun(sessions: readonly SimulatedSession[] = twoSessions): Promise<Simulation> {
  const simulation = new Simulation();
  await simulation.takeOver();
  await simulation.join({ role: "environment" }, { role: "model" }, { role: "agent" }, { role: "resources" });
  for (const process of simulation.processes) process.sessions = [...sessions];
  const [environment] = simulation.processes;
  for (const { rollout, attempt } of sessions) await environment?.say(openedEvent(rollout, attempt));
  await simulation.settle();
  return simulation;
}

export function openedEvent(rollout: string, attempt: number) {
  const task = { digest: digest("task"), bytes: 4, text: "task" };
  const data = { rollout, attempt, sessionId: `s-${rollout}`, task, agent: "agent1", resources: "resources1" };
  return { type: "episode.opened", data: { ...data, budgetMs: null, policyVersion: 0 } };
}

export function endedEvent(rollout: string, attempt: number) {
  const data = { rollout, attempt, sessionId: `s-${rollout}`, status: "finished", reward: 1, verdict: null };
  return { type: "episode.ended", data: { ...data, chargedMs: 0, policyVersion: 0, why: null } };
}

export function expectFailure(outcome: Outcome, code: string): string {
  expect(outcome).toMatchObject({ ok: false, problem: { code } });
  return outcome.ok ? "" : outcome.problem.message;
}

export function expectSuccess(outcome: Outcome): Extract<Outcome, { ok: true }>["result"] {
  if (!outcome.ok) throw new Error(`failed: ${JSON.stringify(outcome)}`);
  return outcome.result;
}

/** The participant of a role. */
export function member({ processes }: Simulation, role: string): SimulatedProcess {
  const process = processes.find(({ options }) => options.role === role);
  if (process === undefined) throw new Error(`no ${role}`);
  return process;
}
