/** A model server in this process, on the in-memory log, with the policies of a test: its HTTP edge is real. */
import { decodeEvents, encodeEvents, eventSchema, MemoryLog } from "@holdpoint/eventsourcing";
import {
  defineModel,
  HttpServer,
  type Model,
  type ModelMode,
  modelSpec,
  Participant,
  type Policies,
  type Policy,
  serveModel,
} from "@holdpoint/participant";
import {
  type ControlEvent,
  controlSubject,
  type LogEventOf,
  logEvents,
  logSubject,
  resultSubject,
} from "@holdpoint/schemas";
import { createLogger } from "@holdpoint/telemetry";
import { MemoryBlobs, MemoryMessenger } from "@holdpoint/testing";
import { Writable } from "node:stream";

type Ask = Extract<ControlEvent, { type: "participants.asked" }>["data"];

const writer = { role: "model", instance: "main", worker: "0" } as const;
const events = eventSchema(logEvents.model);

/** Policies of which there is one, called `only`. */
export function onlyPolicy(reply: Policy["reply"]): Policies {
  return { names: () => ["only"], find: async () => ({ version: 3, reply }) };
}

export class Room {
  readonly log = new MemoryLog("HP_room");
  readonly blobs = new MemoryBlobs();
  readonly lines: string[] = [];
  /** What each trouble was about. */
  readonly abouts: unknown[] = [];
  /** Why it could go on no more. */
  readonly lost: unknown[] = [];
  readonly logger = createLogger(
    "model",
    "debug",
    new Writable({ write: (chunk, _, done) => done(void this.lines.push(String(chunk))) }),
  );
  #servers: { stop(): Promise<void> }[] = [];

  async serve(
    policies: Policies,
    mode: ModelMode = "exported",
  ): Promise<{ readonly url: string; readonly model: Model }> {
    const definition = defineModel({ name: "test", mode, policies });
    const http = await HttpServer.listen("127.0.0.1", 0);
    const model = await Participant.open(
      {
        run: "room",
        instance: "main",
        worker: "0",
        endpoint: http.url,
        incarnation: "life-1",
        log: this.log,
        blobs: this.blobs,
        messenger: new MemoryMessenger(),
        clock: () => 0,
        fenced: () => {},
        trouble: (what, error, about) => {
          this.lines.push(`${what} ${String(error)}`);
          this.abouts.push(about);
        },
      },
      await modelSpec(definition),
    );
    const lost = (error: unknown) => void this.lost.push(error);
    this.#servers.push(await serveModel(definition, model, { http, logger: this.logger, lost }));
    return { url: http.url, model };
  }

  /** An HTTP server that is stopped with the room. */
  async listen(): Promise<HttpServer> {
    const http = await HttpServer.listen("127.0.0.1", 0);
    this.#servers.push(http);
    return http;
  }

  /** Appends to `control`, as the coordinator would. */
  async decide(event: ControlEvent): Promise<void> {
    const subject = controlSubject("room");
    const sequence = (await this.log.lastOn(subject))?.sequence ?? 0;
    const draft = { ...encodeEvents("coordinator", [event]), subject, messageId: `control-${sequence}` };
    await this.log.append({ ...draft, expected: { subject, sequence } });
  }

  async ask(operation: Ask["operation"], rest: Partial<Ask>): Promise<void> {
    const data = { command: 1, operation, roles: ["model" as const], checkpointId: "c1", remainingMs: 60_000, ...rest };
    await this.decide({ type: "participants.asked", data });
  }

  /** Closes admission for a checkpoint. */
  async close(model: Model): Promise<void> {
    await this.ask("prepare", {});
    await model.admission.gateLatch.until(() => model.admission.isClosed);
  }

  /** The environment says that the episode of `asked` is over. */
  async end({ rollout = "r1", attempt = 0 }: Asked = {}): Promise<void> {
    const subject = resultSubject("room", { role: "environment", instance: "main", worker: "0" });
    const sequence = (await this.log.lastOn(subject))?.sequence ?? 0;
    const rest = { reward: null, verdict: null, chargedMs: 0, policyVersion: 0, why: null };
    const data = { rollout, attempt, sessionId: `s-${rollout}`, status: "timed_out" as const, ...rest };
    const draft = { ...encodeEvents("environment", [{ type: "episode.ended", data }]), messageId: `end-${sequence}` };
    await this.log.append({ ...draft, subject, expected: { subject, sequence } });
  }

  /** What the model has said of calls. */
  async calls(): Promise<readonly LogEventOf<"model">[]> {
    const found: LogEventOf<"model">[] = [];
    const upTo = await this.log.lastSequence();
    await this.log.read({ upTo, subjects: [logSubject("room", writer)] }, (message) => {
      for (const { event } of decodeEvents(message, events).events) if ("turn" in event.data) found.push(event);
    });
    return found;
  }

  async stop(): Promise<void> {
    for (const server of this.#servers.splice(0)) await server.stop();
  }
}

export interface Asked {
  readonly rollout?: string;
  readonly attempt?: number;
  readonly turn?: number;
}

export interface Answered {
  readonly status: number;
  readonly body: unknown;
}

const hello = [{ role: "user", content: "hello there" }];

/** Asks for a completion, as an agent that understands checkpoints. `fields`: of the request, beside model and messages. */
export async function ask(url: string, asked: Asked = {}, fields: object = {}): Promise<Answered> {
  const { rollout = "r1", attempt = 0, turn = 0 } = asked;
  const identity = { "x-holdpoint-rollout": rollout, "x-holdpoint-attempt": String(attempt) };
  return post(url, fields, { ...identity, "x-holdpoint-turn": String(turn), "x-holdpoint-aware": "1" });
}

/** Asks for a completion, as a caller that says nothing of itself. */
export async function post(url: string, fields: object = {}, headers: Readonly<Record<string, string>> = {}) {
  const body = JSON.stringify({ model: "only", messages: hello, ...fields });
  const response = await fetch(`${url}/v1/chat/completions`, { method: "POST", body, headers });
  const answered: unknown = await response.json();
  return { status: response.status, body: answered };
}
