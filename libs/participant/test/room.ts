/** A room for one participant and a hand-written controller, on the in-memory log: no broker, no clock but the log's. */
import {
  decodeEvents,
  encodeEvents,
  eventSchema,
  type EventLog,
  MemoryLog,
  type SnapshotStore,
} from "@holdpoint/eventsourcing";
import { type AnyMethod, Participant, type RoleHooks, sha256 } from "@holdpoint/participant";
import {
  type AgentEvent,
  type ControlEvent,
  controlSubject,
  type Episode,
  logEvents,
  logSubject,
  type Mode,
  type ParticipantEvent,
} from "@holdpoint/schemas";
import type { SessionKind } from "@holdpoint/session";
import { MemoryBlobs, MemoryMessenger } from "@holdpoint/testing";

export interface Counter {
  readonly calls: number;
  readonly last: string;
}

export type AgentLogEvent = AgentEvent | ParticipantEvent;
export type Agent = Participant<Counter, AgentEvent>;
export type Ask = Extract<ControlEvent, { type: "participants.asked" }>["data"];
export type AnswerData = Extract<ParticipantEvent, { type: "participant.answered" }>["data"];

export const writer = { role: "agent", instance: "main", worker: "0" } as const;
export const agentEvents = eventSchema(logEvents.agent);
export const content = { digest: sha256(""), bytes: 0, text: "" };

/** Sessions that count the model calls they received. */
export const counterKind: SessionKind<Counter, AgentLogEvent> = {
  open: (event) => (event.type === "session.seeded" ? { calls: 0, last: "" } : undefined),
  evolve: (state, event) =>
    event.type === "call.received" ? { calls: state.calls + 1, last: event.data.response.digest } : state,
  fix: (state) => state,
  summary: (state) => state,
  edges: ({ calls, last }) => ({ calls: { received: calls, last: last === "" ? null : last } }),
};

export function episodeOf(rollout: string, attempt = 0): Episode {
  return { rollout, attempt };
}

/** What the coordinator appends to ask agents; by default for command 1, about `c1`. */
export function askTo(operation: Ask["operation"], rest: Partial<Ask> = {}): ControlEvent {
  const roles = ["agent" as const];
  const data = { command: 1, operation, roles, checkpointId: "c1", remainingMs: 60_000, ...rest };
  return { type: "participants.asked", data };
}

export function seeded(episode: Episode): AgentEvent {
  return { type: "session.seeded", data: { ...episode, sessionId: "s", seed: content } };
}

export function received(episode: Episode, turn: number): AgentEvent {
  return { type: "call.received", data: { ...episode, turn, response: content } };
}

export function started(episode: Episode): AgentEvent {
  return { type: "activation.started", data: episode };
}

class MemorySnapshots implements SnapshotStore {
  readonly saved = new Map<string, Uint8Array>();
  async save(name: string, bytes: Uint8Array): Promise<void> {
    this.saved.set(name, bytes);
  }
  async load(name: string): Promise<Uint8Array | undefined> {
    return this.saved.get(name);
  }
}

export interface Entry {
  readonly hooks?: RoleHooks<Counter, AgentEvent>;
  readonly methods?: Readonly<Record<string, AnyMethod>>;
  readonly mode?: Mode;
  readonly worker?: string;
  /** Another way to the log, such as one with faults. */
  readonly log?: EventLog;
}

export class Room {
  readonly log: MemoryLog;
  readonly blobs = new MemoryBlobs();
  readonly snapshots = new MemorySnapshots();
  readonly messenger = new MemoryMessenger();
  readonly troubles: string[] = [];
  /** What each of them is about, where somebody keeps that. */
  readonly abouts: unknown[] = [];
  readonly failures: unknown[] = [];
  fenced = 0;
  /** Whether the coordinator repeats announcements. */
  joins = true;
  /** Added to the log's clock. */
  laterMs = 0;
  #lives = 0;

  constructor(log = new MemoryLog("HP_room")) {
    this.log = log;
  }

  /** A participant that has folded the log and serves: a new incarnation of the same process. */
  async enter({ hooks = {}, methods = {}, ...rest }: Entry = {}): Promise<Agent> {
    const agent = await this.open(rest);
    await agent.serve({ methods, hooks });
    if (this.joins) await this.join(agent.options.worker, agent.options.incarnation);
    await turns();
    return agent;
  }

  open({ mode = "exported", log = this.log, worker = "0" }: Entry = {}): Promise<Agent> {
    this.#lives += 1;
    return Participant.open<Counter, AgentEvent>(
      {
        run: "room",
        instance: "main",
        worker,
        incarnation: `life-${this.#lives}`,
        log,
        blobs: this.blobs,
        snapshots: this.snapshots,
        messenger: this.messenger,
        clock: () => this.laterMs,
        fenced: () => {
          this.fenced += 1;
        },
        failed: (error) => this.failures.push(error),
        trouble: (what, error) => this.troubles.push(`${what} ${String(error)}`),
      },
      { role: "agent", mode, kind: counterKind, schema: agentEvents },
    );
  }

  /** Appends control events in one message, as the coordinator would. @returns its sequence */
  async decide(...events: readonly ControlEvent[]): Promise<number> {
    const subject = controlSubject("room");
    for (;;) {
      const last = await this.log.lastOn(subject);
      const result = await this.log.append({
        ...encodeEvents("coordinator", events),
        subject,
        messageId: `control-${last?.sequence ?? 0}`,
        expected: { subject, sequence: last?.sequence ?? 0 },
      });
      if (result.stored) return result.sequence;
    }
  }

  /** Asks the agent. @returns the sequence of the ask */
  ask(operation: Ask["operation"], rest: Partial<Ask> = {}): Promise<number> {
    return this.decide(askTo(operation, rest));
  }

  /** What the coordinator repeats of a worker's announcement. */
  join(worker: string, incarnation = `life-${worker}`): Promise<number> {
    const place = { announcedSequence: 1, announcedAtMs: 0, lastAtMs: null };
    return this.decide({
      type: "participant.joined",
      data: { role: "agent", instance: "main", worker, incarnation, mode: "exported", endpoint: null, ...place },
    });
  }

  /** Asks the agent, and waits for its answer. */
  async obeyed(operation: Ask["operation"], rest: Partial<Ask> = {}): Promise<AnswerData> {
    return this.answerTo(await this.ask(operation, rest));
  }

  /** The cut stands. @returns its sequence */
  cut(scope: readonly Episode[], { checkpointId = "c1", command = 1 } = {}): Promise<number> {
    const data = { command, checkpointId, stream: this.log.stream, scope: [...scope], holdings: [] };
    return this.decide({ type: "checkpoint.captured", data });
  }

  /** Resumes, as far as the agent has to do with it. */
  async resume({ checkpointId = "c1", command = 1 } = {}): Promise<void> {
    await this.decide({ type: "checkpoint.resumed", data: { command, checkpointId, reason: "command" } });
    await this.obeyed("resume", { checkpointId, command });
    await this.decide({ type: "resume.ended", data: { command, checkpointId } });
  }

  /** What the process has said so far. All of it can be read, or this fails. */
  async said(from = 1, worker = "0"): Promise<readonly AgentLogEvent[]> {
    return (await this.messages(from, worker)).flat();
  }

  /** What the process has said so far from this sequence on, message by message. */
  async messages(from = 1, worker = "0"): Promise<readonly (readonly AgentLogEvent[])[]> {
    const messages: AgentLogEvent[][] = [];
    const upTo = await this.log.lastSequence();
    await this.log.read({ from, upTo, subjects: [logSubject("room", { ...writer, worker })] }, (message) => {
      const { events, problems } = decodeEvents(message, agentEvents);
      if (problems.length > 0) throw new Error(problems.join("\n"));
      messages.push(events.map(({ event }) => event));
    });
    return messages;
  }

  async types(): Promise<readonly string[]> {
    return (await this.said()).map(({ type }) => type);
  }

  /** The answer to the ask at `asked`, once it is there. */
  async answerTo(asked: number, worker = "0"): Promise<AnswerData> {
    for (;;) {
      for (const event of await this.said(asked, worker)) {
        if (event.type === "participant.answered" && event.data.asked === asked) return event.data;
      }
      await turns(1);
    }
  }

  /** Asks for work on a session, or for a session, as another participant would. */
  async request(subject: string, body: object | string): Promise<unknown> {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const reply: unknown = JSON.parse(new TextDecoder().decode(await this.messenger.request(subject, text)));
    return reply;
  }
}

/** Lets everything that can go on go on. In-memory work needs no more than a few turns of the event loop. */
export async function turns(count = 20): Promise<void> {
  for (let at = 0; at < count; at++) await new Promise((resolve) => setImmediate(resolve));
}
