/** A model server of its own in this process, on the in-memory log: its HTTP edge is real, its broker is not there. */
import { type BlobStore, encodeEvents, MemoryLog } from "@holdpoint/eventsourcing";
import {
  HttpServer,
  type Messenger,
  type Model,
  modelSpec,
  Participant,
  serveModel,
  sha256,
} from "@holdpoint/participant";
import { type EnvironmentEvent, type Episode, logSubject, resultSubject, type TrainerEvent } from "@holdpoint/schemas";
import { createLogger } from "@holdpoint/telemetry";
import { Writable } from "node:stream";
import { repairModel } from "../src/policies.ts";
import type { Script } from "../src/script.ts";
import { Control } from "./control.ts";

const run = "room";

class MemoryBlobs implements BlobStore {
  readonly texts = new Map<string, string>();
  async put(text: string): Promise<string> {
    this.texts.set(sha256(text), text);
    return sha256(text);
  }
  async get(digest: string): Promise<string> {
    const text = this.texts.get(digest);
    if (text === undefined) throw new Error(`no blob ${digest}`);
    return text;
  }
  async has(digest: string): Promise<boolean> {
    return this.texts.has(digest);
  }
}

const silent: Messenger = {
  request: () => new Promise(() => {}),
  subscribe: async () => ({ stop: () => {} }),
};

/** The last turn is too large to rest in an event. */
export const script: Script = [
  [{ name: "list_files", arguments: {} }],
  [{ name: "read_file", arguments: { path: "index.js" } }],
  [{ name: "run_tests", arguments: {} }],
  [{ name: "edit_file", arguments: { path: "index.js", line: 1, old: "", new: "x".repeat(20_000) } }],
];

export interface Life {
  readonly url: string;
  readonly model: Model;
  /** Callers that are held, or whose calls are in the making. */
  readonly waiting: () => number;
}

/** Counts who waits at the gate of `model`. */
function watchGate({ admission: { gateLatch } }: Model): () => number {
  const until = gateLatch.until.bind(gateLatch);
  let waiting = 0;
  gateLatch.until = async (...given) => {
    waiting += 1;
    try {
      await until(...given);
    } finally {
      waiting -= 1;
    }
  };
  return () => waiting;
}

export class Room {
  readonly log = new MemoryLog("HP_room");
  readonly blobs = new MemoryBlobs();
  readonly control = new Control(this.log, run);
  /** What the server logged. */
  readonly lines: string[] = [];
  #running: { stop(): Promise<void> } | undefined;
  #lives = 0;

  /** Starts a life of the model server; one that runs already ends first, without a goodbye. */
  async enter({ holdMs = 60_000, policyWaitMs = 60_000 } = {}): Promise<Life> {
    this.#lives += 1;
    await this.leave();
    const { log, blobs } = this;
    const destination = new Writable({
      write: (chunk, _, done) => {
        this.lines.push(String(chunk));
        done();
      },
    });
    const logger = createLogger("model", "debug", destination);
    const http = await HttpServer.listen("127.0.0.1", 0);
    const options = {
      run,
      instance: "main",
      worker: "0",
      endpoint: http.url,
      incarnation: `life-${this.#lives}`,
      log,
      blobs,
      messenger: silent,
      clock: () => 0,
      fenced: () => {},
      trouble: (what: string, error?: unknown) => logger.warn({ err: error, what }, "trouble"),
    };
    const definition = repairModel({ waitMs: policyWaitMs, script });
    const model: Model = await Participant.open(options, await modelSpec(definition));
    const waiting = watchGate(model);
    const lost = (error: unknown) => logger.error({ err: error }, "lost");
    this.#running = await serveModel(definition, model, { http, logger, holdMs, lost });
    return { url: http.url, model, waiting };
  }

  /** Says as the trainer or the environment would. */
  async say(role: "trainer" | "environment", event: TrainerEvent | EnvironmentEvent): Promise<void> {
    const writer = { role, instance: "main", worker: "0" };
    const subject = role === "trainer" ? logSubject(run, writer) : resultSubject(run, writer);
    const sequence = (await this.log.lastOn(subject))?.sequence ?? 0;
    const draft = { ...encodeEvents(role, [event]), subject, messageId: `${role}-${sequence}` };
    await this.log.append({ ...draft, expected: { subject, sequence } });
  }

  /** Publishes weights as version `version` of the policy. */
  async publish(version: number, weights: readonly number[]): Promise<void> {
    const digest = await this.blobs.put(JSON.stringify(weights));
    await this.say("trainer", { type: "policy.published", data: { version, digest } });
  }

  /** Ends an episode, as the environment would. */
  async end({ rollout, attempt }: Episode): Promise<void> {
    const data = { rollout, attempt, sessionId: "s", status: "finished" as const, reward: 1, why: null };
    const event = { ...data, verdict: null, chargedMs: 0, policyVersion: 0 };
    await this.say("environment", { type: "episode.ended", data: event });
  }

  async leave(): Promise<void> {
    await this.#running?.stop();
    this.#running = undefined;
  }
}
