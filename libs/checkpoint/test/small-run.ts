/**
 * A run small enough to be explored: the real deciders over a log that keeps no messages, only what they fold to. A world can be
 * copied, which a `Simulation` cannot, and nothing in it is asynchronous.
 *
 * Every process holds two gates: its own, and the fold of what the log says, from which a successor starts. Whoever reads at once
 * has one for both.
 */
import {
  advance,
  answered,
  type Ask,
  type Context,
  type CoordinatorState,
  type Decision,
  draftsOf,
  evolveGate,
  initialGate,
  initialState,
  isRefused,
  leaseExpired,
  obligationsOf,
  type ParticipantGate,
  react,
} from "@holdpoint/checkpoint";
import {
  decodeEvents,
  type Draft,
  encodeEvents,
  eventSchema,
  type NewEvent,
  type Recorded,
  type StoredMessage,
} from "@holdpoint/eventsourcing";
import {
  type Adoption,
  commandSubject,
  ControlEvent,
  controlSubject,
  type Episode,
  logSubject,
  type Operation,
  Outcome,
  type Problem,
  type Role,
} from "@holdpoint/schemas";
import { digest } from "@holdpoint/testing";
import { copyOf } from "./copy-of.ts";
import { isSame } from "./small-run-key.ts";
import { type Ghost, newGhost, watchAppend, watchControl } from "./small-run-rules.ts";

export const run = "demo";
const stream = `HP_${run}`;
const controlEvents = eventSchema(ControlEvent);
const encoder = new TextEncoder();
const promise = { serverVersion: "2.15.1", syncAlways: true, replicas: 1, persistMode: "default" };
const leaseGraceMs = 600_000;
/** The log is never damaged here, so that every message has the digest that it had. */
const anchor = digest("a message");

/** One process of a participant. */
export interface SmallProcess {
  readonly role: Role;
  readonly instance: string;
  readonly worker: string;
  readonly subject: string;
  gate: ParticipantGate;
  /** What a successor starts from; the same object as `gate` where nothing is unread. */
  fold: ParticipantGate;
  /** Where it believes that its subject ends. */
  end: number;
  life: number;
  alive: boolean;
  /** What stands on control and it has not read; undefined: it reads at once. */
  unread: Recorded<ControlEvent>[] | undefined;
  sessions: Episode[];
  /** What it answers that it cannot export. */
  readonly restarts: readonly Episode[];
  /** It answers everything with a problem. */
  broken: boolean;
}

export interface World {
  nowMs: number;
  sequence: number;
  /** The fold of the whole log: what the leader knows, and whoever takes over. */
  state: CoordinatorState;
  leader: number;
  readonly outcomes: Map<number, Outcome>;
  readonly processes: SmallProcess[];
  /** What the rules remember by themselves. */
  readonly ghost: Ghost;
  /** What may still happen, by name: commands, and faults. */
  readonly left: Record<string, number>;
  /** The decider under test. */
  readonly decide: (context: Context) => Decision;
}

export interface Member {
  readonly role: Role;
  readonly worker?: string;
  readonly sessions?: readonly Episode[];
  readonly restarts?: readonly Episode[];
}

/** A run in which everybody has announced itself, and `decide` leads. */
export function smallRun(members: readonly Member[], decide: World["decide"] = react): World {
  const state = initialState(run, stream);
  const world: World = {
    nowMs: 1_000_000,
    sequence: 0,
    state,
    leader: 0,
    outcomes: new Map(),
    processes: [],
    ghost: newGhost(),
    left: {},
    decide,
  };
  takeOver(world);
  for (const member of members) join(world, member);
  return world;
}

function join(world: World, { role, worker = "0", sessions = [], restarts = [] }: Member): void {
  const place = { role, instance: `${role}1`, worker };
  const gate = initialGate(role);
  const lives = { end: 0, life: 0, alive: false, unread: undefined, broken: false };
  const process = { ...place, subject: logSubject(run, place), gate, fold: gate, ...lives, restarts };
  const joined: SmallProcess = { ...process, sessions: [...sessions] };
  world.processes.push(joined);
  start(world, joined);
  if (role === "environment" && sessions.length > 0) say(world, joined, ...sessions.map((episode) => opened(episode)));
}

function opened({ rollout, attempt }: Episode): NewEvent {
  const task = { digest: digest("task"), bytes: 4, text: "task" };
  const data = { rollout, attempt, sessionId: `s-${rollout}`, task, agent: "agent1", resources: "resources1" };
  return { type: "episode.opened", data: { ...data, budgetMs: null, policyVersion: 0 } };
}

/** A world of its own, equal to this one. */
export function copied(world: World): World {
  const { decide, processes, ...rest } = world;
  const copies = processes.map(({ gate, fold, unread, ...facts }) => {
    const foldCopy = copyOf(fold);
    return {
      ...facts,
      fold: foldCopy,
      gate: gate === fold ? foldCopy : copyOf(gate),
      unread: unread === undefined ? undefined : [...unread],
    };
  });
  return { ...copyOf(rest), processes: copies, decide };
}

/** Whether the log would store these drafts, if `control` ended at `controlSequence`. */
export function isAccepted(
  world: World,
  drafts: readonly Draft[],
  controlSequence = world.state.controlSequence,
): boolean {
  return drafts.every(({ expected: { subject, sequence } }) => {
    if (subject === controlSubject(run)) return sequence === controlSequence;
    if (subject.startsWith(`hp.${run}.log.`)) return sequence === (world.state.ends.get(subject) ?? 0);
    const [, command] = subject.split("outcome.");
    return sequence === (world.outcomes.has(Number(command)) ? 1 : 0);
  });
}

function append(world: World, drafts: readonly Draft[]): boolean {
  if (!isAccepted(world, drafts)) return false;
  for (const draft of drafts) store(world, draft);
  return true;
}

function store(world: World, { subject, body, messageId, controlPlane = false }: Draft): void {
  world.sequence += 1;
  const { sequence, nowMs: timeMs } = world;
  const message: StoredMessage = { sequence, subject, messageId, controlPlane, timeMs, body: encoder.encode(body) };
  const before = world.state.sequence;
  world.state = advance(world.state, message);
  if (before >= sequence) throw new Error("the fold went back");
  if (subject === controlSubject(run)) {
    for (const recorded of decodeEvents(message, controlEvents).events) controlSaid(world, recorded);
  }
  const [, command] = subject.split("outcome.");
  if (command !== undefined) world.outcomes.set(Number(command), Outcome.parse(JSON.parse(body)));
}

function controlSaid(world: World, recorded: Recorded<ControlEvent>): void {
  watchControl(world.ghost, world.state, recorded.event);
  for (const process of world.processes) {
    const { gate, fold, unread } = process;
    process.fold = evolveGate(fold, recorded);
    if (gate === fold) process.gate = process.fold;
    else if (unread === undefined) process.gate = evolveGate(gate, recorded);
    else unread.push(recorded);
  }
}

/** A command arrives; gives its name. */
export function send(world: World, operation: Operation, body: object): number {
  const subject = commandSubject(run, operation);
  store(world, {
    subject,
    body: JSON.stringify(body),
    messageId: `c${world.sequence}`,
    expected: { subject, sequence: 0 },
  });
  return world.sequence;
}

/** What the leader does next. */
export function decision(world: World): Decision {
  const { state, nowMs, decide } = world;
  const anchors = new Map<number, string>();
  const context = { state, nowMs, leaseGraceMs, anchors };
  const decided = decide(context);
  if (decided.kind !== "read") return decided;
  anchors.set(decided.sequence, anchor);
  return decide(context);
}

export function draftsBy(world: World, { messages }: Extract<Decision, { kind: "append" }>): Draft[] {
  const author = { incarnation: `coordinator-${world.leader}`, number: world.sequence };
  return draftsOf(world.state, messages, author);
}

/** The leader appends what it has decided; false where the log refused it. */
export function act(world: World, decided: Extract<Decision, { kind: "append" }>): boolean {
  return append(world, draftsBy(world, decided));
}

export function takeOver(world: World): void {
  world.leader += 1;
  const incarnation = `coordinator-${world.leader}`;
  const subject = controlSubject(run);
  const expected = { subject, sequence: world.state.controlSequence };
  const events = [{ type: "coordinator.started", data: { incarnation, promise } }];
  append(world, [{ subject, expected, messageId: `${incarnation}-start`, ...encodeEvents(incarnation, events) }]);
}

/** `role.worker`, as actions name it. */
export function nameOf({ role, worker }: SmallProcess): string {
  return `${role}.${worker}`;
}

/** A new life: it fences the one before, and folds what the log says. */
export function start(world: World, process: SmallProcess): void {
  process.life += 1;
  process.alive = true;
  process.end = world.state.ends.get(process.subject) ?? 0;
  process.gate = process.fold;
  process.unread = undefined;
  say(world, process, { type: "participant.announced", data: { mode: "exported", endpoint: null, lastAtMs: null } });
}

/** Appends to its own subject; refused, it is fenced, and dead. */
function say(world: World, process: SmallProcess, ...events: readonly NewEvent[]): boolean {
  const { subject, end, life, instance } = process;
  const expected = { subject, sequence: end };
  const messageId = `${subject}-${world.sequence}`;
  process.alive = append(world, [{ subject, messageId, expected, ...encodeEvents(`${instance}-${life}`, events) }]);
  if (process.alive) process.end = world.sequence;
  if (process.alive) watchAppend(world.ghost, process.subject, events);
  return process.alive;
}

/** Obeys what it owes first. */
export function obey(world: World, process: SmallProcess): void {
  const [first] = obligationsOf(process.gate);
  if (first === undefined) return;
  const { sequence: asked, ask } = first;
  const { operation, checkpointId } = ask;
  const { events = [], ...reply } = replyTo(ask, process);
  const data = { asked, operation, checkpointId, ...reply };
  if (!say(world, process, ...events, { type: "participant.answered", data })) return;
  process.sessions = (reply.installed ?? process.sessions).filter((own) => !isFreed(ask, own));
  heard(process, (gate) => answered(gate, data));
}

function isFreed({ operation, rollouts = [] }: Ask, own: Episode): boolean {
  if (operation !== "retire" && operation !== "forget") return false;
  return rollouts.some(({ rollout, attempt }) => {
    return rollout === own.rollout && (operation === "forget" || own.attempt <= attempt);
  });
}

/** Its own clock says that the lease of what is open here is over. */
export function expire(world: World, process: SmallProcess): void {
  const { closed } = process.gate;
  if (closed === undefined) return;
  const { checkpointId } = closed;
  if (say(world, process, { type: "lease.expired", data: { checkpointId } }))
    heard(process, (gate) => leaseExpired(gate, checkpointId));
}

function heard(process: SmallProcess, change: (gate: ParticipantGate) => ParticipantGate): void {
  const isPrompt = process.gate === process.fold;
  process.fold = change(process.fold);
  process.gate = isPrompt ? process.fold : change(process.gate);
}

/** From here on it reads nothing of control. */
export function lag(process: SmallProcess): void {
  process.gate = copyOf(process.fold);
  process.unread = [];
}

/** Reads all that stands on control. */
export function catchUp(process: SmallProcess): void {
  for (const recorded of process.unread ?? []) process.gate = evolveGate(process.gate, recorded);
  process.unread = undefined;
  if (isSame(process.gate, process.fold)) process.gate = process.fold;
}

interface Reply {
  readonly events?: readonly NewEvent[];
  readonly restarts?: readonly Episode[];
  readonly continued?: readonly Episode[];
  readonly digest?: string;
  readonly sessions?: number;
  readonly installed?: readonly Episode[];
  readonly adopted?: readonly { readonly worker: string; readonly digest: string }[];
  readonly problem?: Problem;
}

function replyTo(
  { operation, scope = [], assignments = [], adoptions = [], checkpointId }: Ask,
  process: SmallProcess,
): Reply {
  const { gate, restarts, subject } = process;
  if (process.broken) return { problem: { code: "unavailable", message: "broken" } };
  const sessions = process.sessions.filter((episode) => !isRefused(gate, episode));
  const held = digest(`held by ${subject}`);
  if (operation === "prepare")
    return { restarts: restarts.filter((episode) => !isRefused(gate, episode)), continued: sessions };
  if (operation === "restore") {
    const installed = assignments.map(({ rollout, to: attempt }) => ({ rollout, attempt }));
    return { digest: held, installed, adopted: adoptedBy(process, adoptions) };
  }
  if (operation !== "capture") return {};
  const inScope = sessions.filter((own) =>
    scope.some((one) => one.rollout === own.rollout && one.attempt === own.attempt),
  );
  const events = inScope.map((episode) => {
    const data = { ...episode, checkpointId, digest: digest(JSON.stringify(episode)), edges: {} };
    return { type: "session.captured", data };
  });
  return { events, digest: held, sessions: inScope.length };
}

/** What it takes over from workers of its instance that are not there. */
function adoptedBy({ role, instance, worker }: SmallProcess, adoptions: readonly Adoption[]) {
  return adoptions
    .filter((adoption) => adoption.role === role && adoption.instance === instance && adoption.worker === worker)
    .map(({ of }) => ({ worker: of, digest: digest(`held by ${logSubject(run, { role, instance, worker: of })}`) }));
}
