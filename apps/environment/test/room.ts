/** An environment in memory, with an agent and a resources server that only answer. */
import { decodeEvents, eventSchema, MemoryLog } from "@holdpoint/eventsourcing";
import { episodeKind } from "@holdpoint/episode";
import { Participant } from "@holdpoint/participant";
import { type LogEventOf, logEvents, logSubject, resultSubject, seedSubject } from "@holdpoint/schemas";
import { createLogger } from "@holdpoint/telemetry";
import { digest, MemoryBlobs, MemoryMessenger } from "@holdpoint/testing";
import type { Environment } from "../src/environment.ts";
import { EnvironmentServer } from "../src/server.ts";

export type Said = LogEventOf<"environment">;

const run = "room";
const writer = { role: "environment", instance: "main", worker: "0" } as const;
const events = eventSchema(logEvents.environment);
const content = (text: string) => ({ digest: digest(text), bytes: text.length, text });

export class Room {
  readonly log = new MemoryLog(`HP_${run}`);
  /** `<role> <method> <rollout>/<attempt>`, in order. */
  readonly asked: string[] = [];
  /** What each method answers; none: it stays silent. */
  replies: Record<string, object | undefined> = {
    seed: { terms: {}, restart: null },
    activate: { status: "ended", output: content("done") },
    close: {},
    verify: { verdict: content('{"reward":1}') },
  };
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
        clock: () => 0,
        fenced: () => {},
        trouble: () => {},
      },
      { role: "environment", mode: "exported", kind: episodeKind, schema: events },
    );
    await new EnvironmentServer(participant, createLogger("environment", "silent")).start();
    return participant;
  }

  /** Agent and resources begin to answer. */
  async servants(): Promise<void> {
    for (const role of ["agent", "resources"]) {
      await this.#messenger.subscribe(`hp.${run}.rpc.*.*.${role}.*`, ({ subject, respond }) => {
        const [, , , rollout, attempt, , method = ""] = subject.split(".");
        this.asked.push(`${role} ${method} ${rollout}/${attempt}`);
        const data = this.replies[method];
        if (data !== undefined) respond(JSON.stringify({ ok: true, data }));
      });
    }
  }

  async dispatch(rollout: string, { attempt = 0, task = "fix it" } = {}): Promise<unknown> {
    const body = { rollout, attempt, task, agent: "main", resources: "main", budgetMs: null, policyVersion: 0 };
    const reply = await this.#messenger.request(seedSubject(run, "environment", "main"), JSON.stringify(body));
    const value: unknown = JSON.parse(new TextDecoder().decode(reply));
    return value;
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

  /** Returns what it has said once that contains an event of this type. */
  async until(type: string): Promise<readonly Said[]> {
    for (;;) {
      const said = await this.said();
      if (said.some((event) => event.type === type)) return said;
      await new Promise((resolve) => void setImmediate(resolve));
    }
  }
}
