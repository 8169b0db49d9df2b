/** An environment in memory, with an agent and a resources server that only answer. */
import { decodeEvents, encodeEvents, eventSchema, MemoryLog } from "@holdpoint/eventsourcing";
import { episodeKind } from "@holdpoint/episode";
import { Participant } from "@holdpoint/participant";
import {
  type ControlEvent,
  controlSubject,
  type Event,
  type LogEventOf,
  logEvents,
  logSubject,
  resultSubject,
  seedSubject,
} from "@holdpoint/schemas";
import { createLogger } from "@holdpoint/telemetry";
import { digest, MemoryBlobs, MemoryMessenger } from "@holdpoint/testing";
import type { Environment } from "../src/environment.ts";
import { EnvironmentServer } from "../src/server.ts";

export type Said = LogEventOf<"environment">;

const run = "room";
const writer = { role: "environment", instance: "main", worker: "0" } as const;
const events = eventSchema(logEvents.environment);
const content = (text: string) => ({ digest: digest(text), bytes: text.length, text });

interface Dispatch {
  readonly attempt?: number;
  readonly task?: string;
  readonly budgetMs?: number | null;
}

export class Room {
  /** The time of the stream, and of the environment's own clock. */
  nowMs = 1_000_000;
  readonly log = new MemoryLog(`HP_${run}`, () => this.nowMs);
  /** `<role> <method> <rollout>/<attempt>`, in order. */
  readonly asked: string[] = [];
  /** What each method answers; none: it is answered later. */
  replies: Record<string, object | undefined> = {
    seed: { terms: {}, restart: null },
    activate: { status: "ended", output: content("done") },
    close: {},
    verify: { verdict: content('{"reward":1}') },
  };
  readonly #waiting: (() => void)[] = [];
  readonly #messenger = new MemoryMessenger();
  readonly #blobs = new MemoryBlobs();
  #lives = 0;

  /** A new life of the environment, which serves. */
  async enter(): Promise<Environment> {
    this.#lives += 1;
    const participant = await Participant.open(
      {
        run,
        ...writer,
        incarnation: `life-${this.#lives}`,
        log: this.log,
        blobs: this.#blobs,
        messenger: this.#messenger,
        clock: () => this.nowMs,
        fenced: () => {},
        trouble: () => {},
      },
      { role: "environment", mode: "exported", kind: episodeKind, schema: events },
    );
    await new EnvironmentServer(participant, createLogger("environment", "silent")).start();
    const place = {
      ...writer,
      incarnation: participant.options.incarnation,
      mode: "exported" as const,
      endpoint: null,
    };
    const announced = { announcedSequence: 1, announcedAtMs: this.nowMs, lastAtMs: null };
    await this.decide({ type: "participant.joined", data: { ...place, ...announced } });
    await this.turns();
    return participant;
  }

  /** Agent and resources begin to answer. */
  async servants(): Promise<void> {
    for (const role of ["agent", "resources"]) {
      await this.#messenger.subscribe(`hp.${run}.rpc.*.*.${role}.*`, ({ subject, respond }) => {
        const [, , , rollout, attempt, , method = ""] = subject.split(".");
        this.asked.push(`${role} ${method} ${rollout}/${attempt}`);
        const answer = () => respond(JSON.stringify({ ok: true, data: this.replies[method] }));
        if (this.replies[method] === undefined) this.#waiting.push(answer);
        else answer();
      });
    }
  }

  /** Answers what was not answered yet. */
  answer(): void {
    for (const answer of this.#waiting.splice(0)) answer();
  }

  async dispatch(rollout: string, { attempt = 0, task = "fix it", budgetMs = null }: Dispatch = {}): Promise<unknown> {
    const body = { rollout, attempt, task, agent: "main", resources: "main", budgetMs, policyVersion: 0 };
    const reply = await this.#messenger.request(seedSubject(run, "environment", "main"), JSON.stringify(body));
    const value: unknown = JSON.parse(new TextDecoder().decode(reply));
    return value;
  }

  /** Appends to `control`, as the coordinator would. @returns its sequence */
  decide(...decided: readonly ControlEvent[]): Promise<number> {
    return this.#say(controlSubject(run), decided);
  }

  /** The agent says of `rollout` that it is parked, or goes on. */
  agentSays(type: "session.parked" | "session.unparked", rollout: string): Promise<number> {
    const subject = logSubject(run, { role: "agent", instance: "main", worker: "0" });
    return this.#say(subject, [{ type, data: { rollout, attempt: 0, checkpointId: "c1" } }]);
  }

  async #say(subject: string, said: readonly Event[]): Promise<number> {
    const sequence = (await this.log.lastOn(subject))?.sequence ?? 0;
    const messageId = `${subject}-${sequence}`;
    const done = await this.log.append({
      subject,
      messageId,
      expected: { subject, sequence },
      ...encodeEvents("i", said),
    });
    return done.stored ? done.sequence : 0;
  }

  /** The types of what it has said so far, with the rollout, log and results alike. */
  async said(): Promise<readonly Said[]> {
    const said: Said[] = [];
    const subjects = [logSubject(run, writer), resultSubject(run, writer)];
    await this.log.read({ upTo: await this.log.lastSequence(), subjects }, (message) => {
      for (const { event } of decodeEvents(message, events).events) if ("rollout" in event.data) said.push(event);
    });
    return said;
  }

  /** Lets everything that can go on go on. */
  async turns(count = 50): Promise<void> {
    for (let turn = 0; turn < count; turn++) await new Promise((resolve) => void setImmediate(resolve));
  }

  /** Returns what it has said once that contains an event of this type. */
  async until(type: string): Promise<readonly Said[]> {
    for (;;) {
      const said = await this.said();
      if (said.some((event) => event.type === type)) return said;
      await new Promise((resolve) => void setImmediate(resolve));
    }
  }
}
