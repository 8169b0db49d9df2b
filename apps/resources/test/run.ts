/**
 * A run on a real broker, in which a test plays the coordinator and the environment, and the resources server is the real one:
 * in this process, or in one of its own that can be killed.
 */
import { HoldpointError } from "@holdpoint/errors";
import { decodeEvents, encodeEvents, type EventLog, eventSchema } from "@holdpoint/eventsourcing";
import { type Connection, ensureStream, openBlobs, openLog } from "@holdpoint/jetstream";
import { Participant, sha256 } from "@holdpoint/participant";
import { packageNamed, type Task, taskOf } from "@holdpoint/repair";
import { claimStateDir, dirProvider } from "@holdpoint/sandbox";
import {
  type Assignment,
  ControlEvent,
  controlSubject,
  type Cut,
  type Episode,
  type LogEventOf,
  logEvents,
  logSubject,
  RpcReply,
  rpcSubject,
} from "@holdpoint/schemas";
import { randomBytes } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { vi } from "vitest";
import * as z from "zod";
import { openWorkshop, ownerOf } from "../src/opening.ts";
import { repairKind } from "../src/repair-session.ts";
import { serve } from "../src/server.ts";
import { cleanups, connectAs, patience, type ServerProcess, startProcess } from "./processes.ts";
import { scratchFolder } from "./scratch.ts";

type Event = LogEventOf<"resources">;
type Ask = Extract<ControlEvent, { type: "participants.asked" }>["data"];
type Answer = Extract<Event, { type: "participant.answered" }>["data"];

const writer = { role: "resources", instance: "main", worker: "0" } as const;
const schema = eventSchema(logEvents.resources);

const ExecutionLine = z.object({
  execution: z.string(),
  rollout: z.string(),
  attempt: z.number(),
  turn: z.number().nullable(),
  index: z.number().nullable(),
  name: z.string(),
  phase: z.enum(["begin", "end"]),
  at: z.iso.datetime(),
});

interface RestoreOrder {
  readonly source: string;
  readonly cut: Cut;
  readonly assignments: Assignment[];
}

export class Run {
  readonly name: string;
  readonly stateDir: string;
  readonly log: EventLog;
  /** What the server in this process complained of. */
  readonly troubles: string[] = [];
  readonly #environment: Connection;
  #command = 0;

  private constructor(name: string, coordinator: Connection, environment: Connection) {
    this.name = name;
    this.stateDir = scratchFolder();
    this.#environment = environment;
    this.log = openLog(coordinator, name);
  }

  static async open(): Promise<Run> {
    const coordinator = await connectAs("coordinator");
    const name = `t-${randomBytes(6).toString("hex")}`;
    await ensureStream(coordinator, name, { maxBytes: 2 ** 28, maxBlobBytes: 2 ** 28 });
    return new Run(name, coordinator, await connectAs("environment"));
  }

  // The control plane, as the coordinator writes it.

  async control(...events: readonly ControlEvent[]): Promise<number> {
    const subject = controlSubject(this.name);
    const last = (await this.log.lastOn(subject))?.sequence ?? 0;
    const messageId = randomBytes(8).toString("hex");
    const draft = { ...encodeEvents("c", events), subject, messageId, expected: { subject, sequence: last } };
    const result = await this.log.append(draft);
    if (!result.stored) throw new Error("another coordinator writes");
    return result.sequence;
  }

  /** Asks the server, and returns the number of the ask. */
  async ask(operation: Ask["operation"], ask: Partial<Ask> = {}): Promise<{ asked: number; command: number }> {
    this.#command += 1;
    const data: Ask = {
      command: this.#command,
      operation,
      roles: ["resources"],
      checkpointId: null,
      remainingMs: 60_000,
      ...ask,
    };
    return { asked: await this.control({ type: "participants.asked", data }), command: this.#command };
  }

  async answerTo(asked: number): Promise<Answer> {
    return vi.waitFor(async () => {
      for (const event of await this.events()) {
        if (event.type === "participant.answered" && event.data.asked === asked) return event.data;
      }
      throw new Error("no answer yet");
    }, patience);
  }

  async asked(operation: Ask["operation"], ask: Partial<Ask> = {}): Promise<Answer> {
    return this.answerTo((await this.ask(operation, ask)).asked);
  }

  /** Prepare and capture, up to the cut; @returns the answer of the capture, and the position of the cut. */
  async capture(checkpointId: string, scope: readonly Episode[]): Promise<{ answer: Answer; cut: number }> {
    await this.asked("prepare", { checkpointId });
    const { asked, command } = await this.ask("capture", { checkpointId, scope: [...scope] });
    const answer = await this.answerTo(asked);
    if (answer.problem !== undefined) return { answer, cut: 0 };
    const data = { command, checkpointId, stream: this.log.stream, scope: [...scope], holdings: [] };
    return { answer, cut: await this.control({ type: "checkpoint.captured", data }) };
  }

  async resume(checkpointId: string): Promise<void> {
    await this.control({ type: "checkpoint.resumed", data: { command: null, checkpointId, reason: "command" } });
    await this.asked("resume", { checkpointId });
    await this.control({ type: "resume.ended", data: { command: null, checkpointId } });
  }

  /** The whole of a checkpoint. @returns the position of the cut */
  async checkpoint(checkpointId: string, scope: readonly Episode[]): Promise<number> {
    const { cut } = await this.capture(checkpointId, scope);
    await this.asked("commit", { checkpointId });
    await this.resume(checkpointId);
    return cut;
  }

  /** Restores `rollouts` from `source`, each as the attempt after; installed unless there was a problem. */
  async restore(checkpointId: string, source: string, cut: number, origins: readonly Episode[]): Promise<Answer> {
    const assignments = origins.map(({ rollout, attempt }) => ({ rollout, from: attempt, to: attempt + 1 }));
    const position = { [this.log.stream]: cut };
    return this.restoreAs(checkpointId, { source, cut: position, assignments });
  }

  async restoreAs(checkpointId: string, order: RestoreOrder): Promise<Answer> {
    const { answer, data } = await this.beginRestore(checkpointId, order);
    const { problem } = answer;
    if (problem === undefined) await this.control({ type: "restore.installed", data: { ...data, receipt: [] } });
    else await this.control({ type: "restore.failed", data: { ...data, problem } });
    await this.resume(checkpointId);
    return answer;
  }

  /** Up to the server's answer. @returns it, and what names the restore */
  async beginRestore(checkpointId: string, order: RestoreOrder) {
    const command = this.#command + 1;
    await this.control({ type: "restore.started", data: { command, checkpointId, ...order } });
    const answer = await this.asked("restore", { checkpointId, ...order });
    return { answer, data: { command, checkpointId, source: order.source } };
  }

  async retire(...rollouts: Episode[]): Promise<Answer> {
    await this.control({ type: "rollouts.marked", data: { command: this.#command + 1, rollouts } });
    return this.asked("retire", { rollouts });
  }

  async release(checkpointId: string, kept: string[], dropped: string[]): Promise<Answer> {
    const data = { command: this.#command + 1, checkpointId, kept, dropped };
    await this.control({ type: "checkpoint.releasing", data });
    return this.asked("release", { checkpointId, kept });
  }

  // The environment and the agent.

  /** One request to the server. @throws HoldpointError of the reply's problem */
  async rpc(episode: Episode, method: string, body: object = {}): Promise<unknown> {
    const subject = rpcSubject(this.name, episode, "resources", method);
    const text = JSON.stringify({ to: writer.instance, ...body });
    for (;;) {
      const bytes = await this.#environment.request(subject, text, { timeoutMs: patience.timeout });
      const reply = RpcReply.parse(JSON.parse(new TextDecoder().decode(bytes)));
      if (reply.ok) return reply.data;
      if (!reply.problem.message.includes("does not take part yet")) {
        throw new HoldpointError(reply.problem.code, reply.problem.message);
      }
    }
  }

  async seed(episode: Episode, task: Task, more: object = {}): Promise<unknown> {
    return this.rpc(episode, "seed", {
      ...episode,
      sessionId: `s-${episode.rollout}`,
      seed: { task, seed: 1 },
      ...more,
    });
  }

  /** The text of a tool's result. */
  async tool(episode: Episode, call: `${number}/${number}`, name: string, input: object = {}): Promise<string> {
    const [turn, index] = call.split("/").map(Number);
    const reply = await this.rpc(episode, "tool", { turn, index, name, arguments: JSON.stringify(input) });
    return z.object({ result: z.object({ text: z.string() }) }).parse(reply).result.text;
  }

  async verify(episode: Episode): Promise<Record<string, unknown>> {
    const reply = await this.rpc(episode, "verify");
    const { text } = z.object({ verdict: z.object({ text: z.string() }) }).parse(reply).verdict;
    return z.record(z.string(), z.unknown()).parse(JSON.parse(text));
  }

  // What became of it.

  async events(): Promise<readonly Event[]> {
    const events: Event[] = [];
    const upTo = await this.log.lastSequence();
    await this.log.read({ upTo, subjects: [logSubject(this.name, writer)] }, (message) => {
      events.push(...decodeEvents(message, schema).events.map(({ event }) => event));
    });
    return events;
  }

  async eventsOf(type: Event["type"]): Promise<readonly Readonly<Record<string, unknown>>[]> {
    return (await this.events()).flatMap((event) => (event.type === type ? [event.data] : []));
  }

  /** Lines of the execution log, as `name turn/index phase`. */
  executions(): readonly string[] {
    return this.executionLines().map(({ name, turn, index, phase }) => `${name} ${turn}/${index} ${phase}`);
  }

  executionLines(): readonly z.infer<typeof ExecutionLine>[] {
    const path = join(this.stateDir, "executions.jsonl");
    const lines = existsSync(path) ? readFileSync(path, "utf8").split("\n").filter(Boolean) : [];
    return lines.map((line) => ExecutionLine.parse(JSON.parse(line)));
  }

  sandboxes(): readonly string[] {
    return readdirSync(join(this.stateDir, "sandboxes"));
  }

  snapshots(): readonly string[] {
    return readdirSync(join(this.stateDir, "snapshots"));
  }

  /** The folder of the sandbox that the log says the session has. */
  async sandboxOf(episode: Episode): Promise<string> {
    let sandbox = "";
    for (const event of await this.events()) {
      if (event.type !== "session.seeded" && event.type !== "sandbox.lent") continue;
      const { data } = event;
      if (data.rollout === episode.rollout && data.attempt === episode.attempt) sandbox = data.sandbox ?? "";
    }
    return join(this.stateDir, "sandboxes", sandbox);
  }

  // The server.

  /** Serves in this process. */
  async serve(): Promise<Server> {
    await claimStateDir(this.stateDir, ownerOf(this.name, writer.instance, writer.worker));
    const connection = await connectAs("resources");
    const provider = await dirProvider({ root: this.stateDir });
    const participant = await Participant.open(
      {
        run: this.name,
        instance: writer.instance,
        worker: writer.worker,
        incarnation: `i-${randomBytes(6).toString("hex")}`,
        log: openLog(connection, this.name),
        blobs: openBlobs(connection, this.name, sha256),
        messenger: connection,
        clock: () => Date.now(),
        fenced: () => this.troubles.push("fenced"),
        trouble: (what, error) => this.troubles.push(`${what}: ${String(error)}`),
      },
      { role: "resources", mode: "exported", kind: repairKind(sha256), schema },
    );
    const workshop = await openWorkshop(participant, provider, this.stateDir);
    await serve(workshop);
    await this.#repeat();
    let stopped: Promise<void> | undefined;
    const end = async () => {
      await participant.stop();
      await provider.close();
      workshop.executions.close();
      await connection.close();
    };
    const stop = () => (stopped ??= end());
    cleanups.push(stop);
    return { stop };
  }

  /** Serves in a process of its own; returns once it has announced itself and serves. */
  async spawn(env: Record<string, string> = {}): Promise<ServerProcess> {
    const before = (await this.eventsOf("participant.announced")).length;
    const server = startProcess({ HOLDPOINT_RUN: this.name, HOLDPOINT_STATE_DIR: this.stateDir, ...env });
    await vi.waitFor(async () => {
      if (server.child.exitCode !== null) throw new Error(`ended: ${server.output()}`);
      if ((await this.eventsOf("participant.announced")).length === before) throw new Error("not announced");
      if (!server.output().includes("resources serves")) throw new Error("does not serve");
    }, patience);
    await this.#repeat();
    return server;
  }

  /** Repeats the latest announcement, as the coordinator does: where a real one leads it does so itself. */
  async #repeat(): Promise<void> {
    const types: string[] = [];
    const upTo = await this.log.lastSequence();
    await this.log.read({ upTo, subjects: [controlSubject(this.name)] }, (message) => {
      for (const { event } of decodeEvents(message, eventSchema(ControlEvent)).events) types.push(event.type);
    });
    if (types.includes("coordinator.started")) return;
    const last = await this.log.lastOn(logSubject(this.name, writer));
    if (last === undefined) throw new Error("it has not announced itself");
    const { incarnation } = z
      .object({ incarnation: z.string() })
      .parse(JSON.parse(new TextDecoder().decode(last.body)));
    const announced = { announcedSequence: last.sequence, announcedAtMs: last.timeMs, lastAtMs: null };
    const data = { ...writer, incarnation, mode: "exported" as const, endpoint: null, ...announced };
    await this.control({ type: "participant.joined", data });
  }
}

/** The server in this process. */
export interface Server {
  /** Without a goodbye, as a crash would. Harmless when repeated. */
  stop(): Promise<void>;
}

/** A task of the workload: small packages run their tests in a tenth of a second. */
export function someTask(name = "text-table", seed = 1): Task {
  const spec = packageNamed(name);
  if (spec === undefined) throw new Error(`no package ${name}`);
  return taskOf({ seed, spec });
}

/** Code of a package that waits, without using CPU time, while there is a file at `path`. */
export function waitingFor(path: string): string {
  return `
const cell = new Int32Array(new SharedArrayBuffer(4));
while (require("fs").existsSync(${JSON.stringify(path)})) Atomics.wait(cell, 0, 0, 5);
`;
}
