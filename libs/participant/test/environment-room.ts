/** An environment in memory, with an agent and a resources server that only answer, and a hand-written controller. */
import { decodeEvents, encodeEvents, eventSchema, MemoryLog } from "@holdpoint/eventsourcing";
import {
  defineEnvironment,
  type Environment,
  type EnvironmentDefinition,
  environmentSpec,
  type EpisodeRun,
  type Outcome,
  Participant,
  serveEnvironment,
} from "@holdpoint/participant";
import {
  type ControlEvent,
  controlSubject,
  type Episode,
  type Event,
  type Json,
  type LogEventOf,
  logEvents,
  logSubject,
  type ParticipantEvent,
  resultSubject,
  seedSubject,
} from "@holdpoint/schemas";
import { createLogger } from "@holdpoint/telemetry";
import { digest, MemoryBlobs, MemoryMessenger } from "@holdpoint/testing";
import { Writable } from "node:stream";
import * as z from "zod";

export type Said = LogEventOf<"environment">;
type Ask = Extract<ControlEvent, { type: "participants.asked" }>["data"];
type Answer = Extract<ParticipantEvent, { type: "participant.answered" }>["data"];

const run = "room";
const writer = { role: "environment", instance: "main", worker: "0" } as const;
const events = eventSchema(logEvents.environment);
export const content = (text: string) => ({ digest: digest(text), bytes: text.length, text });

/** Takes the four steps; its reward is the verdict's. */
export const plain = defineEnvironment({ name: "plain", mode: "exported", task: z.json() });

interface Dispatch {
  readonly attempt?: number;
  readonly task?: Json;
  readonly budgetMs?: number | null;
}

interface Asked {
  /** `<role> <method> <rollout>/<attempt>` */
  readonly what: string;
  readonly body: Readonly<Record<string, unknown>>;
}

export class Room {
  /** The time of the stream, and of the environment's own clock. */
  nowMs = 1_000_000;
  readonly log = new MemoryLog(`HP_${run}`, () => this.nowMs);
  readonly blobs = new MemoryBlobs();
  /** What was asked of the servers, in order. */
  readonly requests: Asked[] = [];
  /** `what` of each request. */
  readonly asked: string[] = [];
  /**
   * What each method answers, for one role (`agent seed`) or for both (`seed`): data, or `{ problem }`. undefined: it is answered
   * later, with what stands there then.
   */
  replies: Record<string, object | undefined> = {
    seed: { terms: {}, restart: null },
    activate: { status: "ended", output: content("done") },
    close: {},
    verify: { verdict: content('{"reward":1}') },
  };
  /** The worker that holds a session, by role: what each says that is asked whether it does. */
  readonly holders: Record<string, string | undefined> = { agent: "0", resources: "0" };
  /** What the environment's logger wrote, and what it was in trouble about. */
  readonly lines: string[] = [];
  readonly definition: EnvironmentDefinition;
  readonly #waiting: (() => void)[] = [];
  readonly #messenger = new MemoryMessenger();
  #command = 1;
  #lives = 0;

  constructor(definition = plain) {
    this.definition = definition;
  }

  /** A new life of the environment, which serves. */
  async enter(): Promise<Environment> {
    this.#lives += 1;
    const spec = await environmentSpec(this.definition);
    const participant = await Participant.open(
      {
        run,
        ...writer,
        incarnation: `life-${this.#lives}`,
        log: this.log,
        blobs: this.blobs,
        messenger: this.#messenger,
        clock: () => this.nowMs,
        fenced: () => {},
        trouble: (what, error) => this.lines.push(`${what} ${String(error)}`),
      },
      spec,
    );
    const destination = new Writable({ write: (chunk, _, done) => done(void this.lines.push(String(chunk))) });
    await serveEnvironment(this.definition, participant, createLogger("environment", "debug", destination));
    const place = { ...writer, incarnation: participant.options.incarnation, mode: spec.mode, endpoint: null };
    const announced = { announcedSequence: 1, announcedAtMs: this.nowMs, lastAtMs: null };
    await this.decide({ type: "participant.joined", data: { ...place, ...announced } });
    await this.turns();
    return participant;
  }

  /** Agent and resources begin to answer. */
  async servants(): Promise<void> {
    for (const role of ["agent", "resources"]) {
      await this.#messenger.subscribe(`hp.${run}.rpc.*.*.${role}.*`, ({ subject, data, respond }) => {
        const [, , , rollout, attempt, , method = ""] = subject.split(".");
        const what = `${role} ${method} ${rollout}/${attempt}`;
        this.asked.push(what);
        const body = z.record(z.string(), z.unknown()).parse(json(data));
        this.requests.push({ what, body });
        const holds = this.holders[role] === body["worker"];
        if (method === "holder") return respond(JSON.stringify({ ok: true, data: { holds } }));
        const answer = () => respond(JSON.stringify(this.#reply(role, method)));
        if (this.#said(role, method) === undefined) this.#waiting.push(answer);
        else answer();
      });
    }
  }

  /** Processes of the servers join, each `<role> <worker>`. */
  async join(...places: readonly ["agent" | "resources", string][]): Promise<void> {
    const rest = { endpoint: null, announcedSequence: 1, announcedAtMs: 0, lastAtMs: null };
    for (const [role, worker] of places) {
      const data = { role, instance: "main", worker, incarnation: "a", mode: "exported" as const, ...rest };
      await this.decide({ type: "participant.joined", data });
    }
    await this.turns();
  }

  /** One of them will not come back. */
  async remove(role: "agent" | "resources", worker: string): Promise<void> {
    await this.decide({ type: "participant.removed", data: { command: 1, role, instance: "main", worker } });
    await this.turns();
  }

  #said(role: string, method: string): object | undefined {
    const own = `${role} ${method}`;
    return this.replies[own in this.replies ? own : method];
  }

  #reply(role: string, method: string): object {
    const said = this.#said(role, method) ?? {};
    return "problem" in said ? { ok: false, ...said } : { ok: true, data: said };
  }

  /** Answers what was not answered yet. */
  answer(): void {
    for (const answer of this.#waiting.splice(0)) answer();
  }

  /** Returns once this was asked of a server. */
  async untilAsked(what: string): Promise<void> {
    while (!this.asked.includes(what)) await this.turns(1);
  }

  async dispatch(rollout: string, { attempt = 0, task = "fix it", budgetMs = null }: Dispatch = {}): Promise<unknown> {
    const body = { rollout, attempt, task, agent: "main", resources: "main", budgetMs, policyVersion: 0 };
    return this.request(seedSubject(run, "environment", "main"), body);
  }

  async request(subject: string, body: object): Promise<unknown> {
    return json(await this.#messenger.request(subject, JSON.stringify(body)));
  }

  /** Appends to `control`, as the coordinator would. @returns its sequence */
  decide(...decided: readonly ControlEvent[]): Promise<number> {
    return this.#say(controlSubject(run), decided);
  }

  /** Asks the environment, and returns its answer. */
  async obeyed(operation: Ask["operation"], checkpointId: string | null, rest: Partial<Ask> = {}): Promise<Answer> {
    const command = ++this.#command;
    const data = { command, operation, roles: [writer.role], checkpointId, remainingMs: 60_000, ...rest };
    const asked = await this.decide({ type: "participants.asked", data });
    for (;;) {
      for (const { type, data: said } of await this.everything()) {
        if (type === "participant.answered" && said.asked === asked) return said;
      }
      await this.turns(1);
    }
  }

  /** Fixes what is in `scope`, admission being closed. @returns the environment's answer, and the cut */
  async capture(checkpointId: string, scope: readonly Episode[]) {
    const answer = await this.obeyed("capture", checkpointId, { scope: [...scope] });
    const data = { command: this.#command, checkpointId, stream: this.log.stream, scope: [...scope], holdings: [] };
    return { answer, cut: { [this.log.stream]: await this.decide({ type: "checkpoint.captured", data }) } };
  }

  /** Admission opens again; the id is stale from here. */
  async resume(checkpointId: string): Promise<void> {
    await this.decide({ type: "checkpoint.resumed", data: { command: null, checkpointId, reason: "command" } });
    await this.obeyed("resume", checkpointId);
    await this.decide({ type: "resume.ended", data: { command: null, checkpointId } });
  }

  /** A whole checkpoint of `scope`. */
  async checkpoint(checkpointId: string, scope: readonly Episode[]) {
    await this.obeyed("prepare", checkpointId);
    const captured = await this.capture(checkpointId, scope);
    await this.resume(checkpointId);
    return captured;
  }

  /** Everything is retired and restored as the next attempt, in processes that come after these. */
  async restore(id: string, from: { readonly source: string; readonly cut: Record<string, number> }, rollout = "r1") {
    const rollouts = [{ rollout, attempt: 0 }];
    await this.decide({ type: "rollouts.marked", data: { command: this.#command, rollouts } });
    await this.obeyed("retire", null, { rollouts });
    const assignments = [{ rollout, from: 0, to: 1 }];
    const data = { command: this.#command, checkpointId: id, ...from };
    await this.decide({ type: "restore.started", data: { ...data, assignments } });
    const answer = await this.obeyed("restore", id, { ...from, assignments });
    await this.decide({ type: "restore.installed", data: { ...data, receipt: [] } });
    await this.resume(id);
    return answer;
  }

  /** The agent says of `rollout` that it is parked, or goes on. */
  agentSays(type: "session.parked" | "session.unparked", rollout: string, attempt = 0): Promise<number> {
    const subject = logSubject(run, { role: "agent", instance: "main", worker: "0" });
    return this.#say(subject, [{ type, data: { rollout, attempt, checkpointId: "c1" } }]);
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

  /** All that the environment has said so far, log and results alike. */
  async everything(): Promise<readonly Said[]> {
    const said: Said[] = [];
    const subjects = [logSubject(run, writer), resultSubject(run, writer)];
    await this.log.read({ upTo: await this.log.lastSequence(), subjects }, (message) => {
      for (const { event } of decodeEvents(message, events).events) said.push(event);
    });
    return said;
  }

  /** What it has said so far about single episodes. */
  async said(): Promise<readonly Said[]> {
    return (await this.everything()).filter(({ data }) => "rollout" in data);
  }

  /** How the attempt of an episode ends, once it has. */
  async ending(attempt = 0): Promise<object> {
    for (;;) {
      const said = await this.said();
      const end = said.find(({ type, data }) => type === "episode.ended" && data.attempt === attempt);
      if (end !== undefined) return end.data;
      await this.turns(1);
    }
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
      await this.turns(1);
    }
  }
}

function json(bytes: Uint8Array): unknown {
  const value: unknown = JSON.parse(new TextDecoder().decode(bytes));
  return value;
}

/** The bookmarks in what was said. */
export function stagesIn(said: readonly Said[]): readonly string[] {
  return said.flatMap((event) => (event.type === "episode.bookmarked" ? [event.data.stage] : []));
}

export type Run = (episode: EpisodeRun<Json>) => Promise<Outcome>;

/** A room whose environment is called `sums`. */
export function roomOf(given: Run): Room {
  return new Room(defineEnvironment({ name: "sums", mode: "exported", task: z.json(), run: given }));
}

/** An episode of `room`, from its dispatch to its end. @returns how it has ended */
export async function played(room: Room): Promise<object> {
  await room.servants();
  await room.enter();
  await room.dispatch("r1");
  return room.ending();
}
