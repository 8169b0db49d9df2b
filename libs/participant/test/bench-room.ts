/** A room for one participant and a hand-written controller, on the in-memory log: no broker, no clock but the log's. */
import {
  type AppendResult,
  type BlobStore,
  decodeEvents,
  encodeEvents,
  eventSchema,
  MemoryLog,
  type SnapshotStore,
} from "@holdpoint/eventsourcing";
import { Latch, type Messenger, Participant, type RoleHooks, sha256 } from "@holdpoint/participant";
import {
  type AgentEvent,
  type ControlEvent,
  controlSubject,
  logEvents,
  logSubject,
  type ParticipantEvent,
} from "@holdpoint/schemas";
import type { SessionKind } from "@holdpoint/session";

export interface Counter {
  readonly calls: number;
  readonly last: string;
}

type AgentLogEvent = AgentEvent | ParticipantEvent;

const writer = { role: "agent", instance: "main", worker: "0" } as const;
export const agentEvents = eventSchema(logEvents.agent);

/** Sessions that count the model calls they received. */
export const counterKind: SessionKind<Counter, AgentLogEvent> = {
  open: (event) => (event.type === "session.seeded" ? { calls: 0, last: "" } : undefined),
  evolve: (state, event) =>
    event.type === "call.received" ? { calls: state.calls + 1, last: event.data.response.digest } : state,
  fix: (state) => state,
  summary: (state) => state,
  edges: ({ calls, last }) => ({ calls: { received: calls, last: last === "" ? null : last } }),
};

class MemorySnapshots implements SnapshotStore {
  readonly saved = new Map<string, Uint8Array>();
  async save(name: string, bytes: Uint8Array): Promise<void> {
    this.saved.set(name, bytes);
  }
  async load(name: string): Promise<Uint8Array | undefined> {
    return this.saved.get(name);
  }
}

class MemoryBlobs implements BlobStore {
  readonly #texts = new Map<string, string>();
  async put(text: string): Promise<string> {
    this.#texts.set(sha256(text), text);
    return sha256(text);
  }
  async get(digest: string): Promise<string> {
    return this.#texts.get(digest) ?? "";
  }
  async has(digest: string): Promise<boolean> {
    return this.#texts.has(digest);
  }
}

const silent: Messenger = {
  request: () => new Promise(() => {}),
  subscribe: async () => ({ stop: () => {} }),
};

export class Room {
  readonly log = new MemoryLog("HP_room");
  readonly blobs = new MemoryBlobs();
  readonly snapshots = new MemorySnapshots();
  readonly troubles: string[] = [];
  readonly seen = new Latch();
  fenced = 0;
  #lives = 0;

  async enter(hooks: RoleHooks<Counter, AgentEvent> = {}): Promise<Participant<Counter, AgentEvent>> {
    this.#lives += 1;
    const participant = await Participant.open<Counter, AgentEvent>(
      {
        run: "room",
        instance: "main",
        worker: "0",
        incarnation: `life-${this.#lives}`,
        log: this.log,
        blobs: this.blobs,
        snapshots: this.snapshots,
        messenger: silent,
        clock: () => 0,
        fenced: () => {
          this.fenced += 1;
        },
        trouble: (what, error) => this.troubles.push(`${what} ${String(error)}`),
      },
      { role: "agent", mode: "exported", kind: counterKind, schema: agentEvents },
    );
    await participant.serve({ methods: {}, hooks });
    return participant;
  }

  /** Appends a control event, as the coordinator would. @returns its sequence */
  async decide(event: ControlEvent): Promise<number> {
    const subject = controlSubject("room");
    const last = await this.log.lastOn(subject);
    const result: AppendResult = await this.log.append({
      ...encodeEvents("coordinator", [event]),
      subject,
      messageId: `control-${last?.sequence ?? 0}`,
      expected: { subject, sequence: last?.sequence ?? 0 },
    });
    return result.stored ? result.sequence : 0;
  }

  /** What the participant has said so far. */
  async said(): Promise<readonly AgentLogEvent[]> {
    const events: AgentLogEvent[] = [];
    const upTo = await this.log.lastSequence();
    await this.log.read({ upTo, subjects: [logSubject("room", writer)] }, (message) => {
      for (const { event } of decodeEvents(message, agentEvents).events) events.push(event);
    });
    return events;
  }

  /** The answer to the ask at `asked`, once it is there. */
  async answerTo(asked: number): Promise<Extract<ParticipantEvent, { type: "participant.answered" }>["data"]> {
    for (;;) {
      for (const event of await this.said()) {
        if (event.type === "participant.answered" && event.data.asked === asked) return event.data;
      }
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}
