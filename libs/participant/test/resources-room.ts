/** A run in which a test plays the coordinator, the environment and the agent, and a resources server is a real one. */
import { HoldpointError } from "@holdpoint/errors";
import { decodeEvents, encodeEvents, type EventLog, eventSchema, MemoryLog } from "@holdpoint/eventsourcing";
import {
  Participant,
  type Resources,
  resourcesSpec,
  type ServedResources,
  serveResources,
  type ServingOptions,
} from "@holdpoint/participant";
import {
  type Access,
  type ControlEvent,
  controlSubject,
  type Episode,
  GrantReply,
  type LogEventOf,
  logEvents,
  logSubject,
  RpcReply,
  rpcSubject,
  SeedReply,
  ToolReply,
  VerifyReply,
} from "@holdpoint/schemas";
import { type Connection, openLog } from "@holdpoint/jetstream";
import { MemoryBlobs, MemoryMessenger } from "@holdpoint/testing";
import { vi } from "vitest";
import type * as z from "zod";

type Event = LogEventOf<"resources">;
type Ask = Extract<ControlEvent, { type: "participants.asked" }>["data"];
type Answer = Extract<Event, { type: "participant.answered" }>["data"];

const writer: { readonly role: "resources"; readonly instance: string; readonly worker: string } = {
  role: "resources",
  instance: "main",
  worker: "0",
};
const schema = eventSchema(logEvents.resources);
/** A bound against hanging, never a measure. */
export const patience = { timeout: 60_000, interval: 2 };

/** What of a broker's connection requests need. */
interface Asking {
  readonly request: (
    subject: string,
    body: string,
    options: { readonly timeoutMs: number; readonly signal?: AbortSignal },
  ) => Promise<Uint8Array>;
}

/** `log` is the coordinator's, `asking` the environment's connection, `server` that of a server in this process. */
export interface OnBroker {
  readonly run: string;
  readonly log: EventLog;
  readonly asking: Asking;
  readonly server?: Connection;
}

export function episodeOf(rollout: string, attempt = 0): Episode {
  return { rollout, attempt };
}

export class ResourcesRoom {
  readonly run: string;
  readonly log: EventLog;
  readonly troubles: string[] = [];
  /** What each of them is about. */
  readonly abouts: unknown[] = [];
  readonly #asking: Asking;
  readonly #server: Connection | undefined;
  readonly #memory = new MemoryMessenger();
  readonly #blobs = new MemoryBlobs();
  /** Those that take part; one in another process is worker 0. */
  readonly #workers = new Set<string>([writer.worker]);
  /** Those that are gone: a restore gives what they held to worker 0. */
  readonly #lost = new Set<string>();
  #command = 0;
  #lives = 0;

  /** In memory, unless there is a broker. */
  constructor(broker?: OnBroker) {
    this.run = broker?.run ?? "room";
    this.log = broker?.log ?? new MemoryLog("HP_room");
    this.#asking = broker?.asking ?? this.#memory;
    this.#server = broker?.server;
  }

  /** Serves in this process; stopping it is as a crash would be. */
  async serve(
    resources: Resources,
    { worker = writer.worker, ...options }: ServingOptions & { readonly worker?: string } = {},
  ): Promise<ServedResources> {
    this.#lives += 1;
    this.#workers.add(worker);
    const incarnation = `life-${this.#lives}`;
    const participant = await Participant.open(
      {
        run: this.run,
        instance: writer.instance,
        worker,
        incarnation,
        log: this.#server === undefined ? this.log : openLog(this.#server, this.run),
        blobs: this.#blobs,
        messenger: this.#server ?? this.#memory,
        clock: () => 0,
        fenced: () => this.troubles.push("fenced"),
        failed: (error) => this.troubles.push(`failed: ${String(error)}`),
        trouble: (what, error, about) => {
          this.troubles.push(`${what}: ${String(error)}`);
          this.abouts.push(about);
        },
      },
      await resourcesSpec(resources),
    );
    const served = await serveResources(resources, participant, options);
    await this.join(incarnation, worker);
    return served;
  }

  /** What the coordinator repeats of an announcement. */
  async join(incarnation: string, worker = writer.worker): Promise<void> {
    const place = { announcedSequence: 1, announcedAtMs: 0, lastAtMs: null };
    const data = { ...writer, worker, incarnation, mode: "exported" as const, endpoint: null, ...place };
    await this.control({ type: "participant.joined", data });
  }

  /** A worker is gone for good; whoever served it has been stopped. */
  async remove(worker: string): Promise<void> {
    this.#workers.delete(worker);
    this.#lost.add(worker);
    const { role, instance } = writer;
    await this.control({ type: "participant.removed", data: { command: this.#command + 1, role, instance, worker } });
  }

  // The control plane.

  async control(...events: readonly ControlEvent[]): Promise<number> {
    const subject = controlSubject(this.run);
    const last = (await this.log.lastOn(subject))?.sequence ?? 0;
    const draft = { ...encodeEvents("c", events), subject, messageId: `control-${last}` };
    const result = await this.log.append({ ...draft, expected: { subject, sequence: last } });
    if (!result.stored) throw new Error("another coordinator writes");
    return result.sequence;
  }

  async ask(operation: Ask["operation"], rest: Partial<Ask> = {}): Promise<{ asked: number; command: number }> {
    this.#command += 1;
    const command = this.#command;
    const about = { command, operation, roles: ["resources" as const], checkpointId: null, remainingMs: 60_000 };
    return { asked: await this.control({ type: "participants.asked", data: { ...about, ...rest } }), command };
  }

  answerTo(asked: number, worker = writer.worker): Promise<Answer> {
    return vi.waitFor(async () => {
      for (const event of await this.all([worker])) {
        if (event.type === "participant.answered" && event.data.asked === asked) return event.data;
      }
      throw new Error("no answer yet");
    }, patience);
  }

  /** @returns the first answer of all workers that names a problem, else that of the first worker */
  async asked(operation: Ask["operation"], rest: Partial<Ask> = {}): Promise<Answer> {
    return this.#answered((await this.ask(operation, rest)).asked);
  }

  async #answered(asked: number): Promise<Answer> {
    const answers = await Promise.all([...this.#workers].map((worker) => this.answerTo(asked, worker)));
    const answer = answers.find(({ problem }) => problem !== undefined) ?? answers[0];
    if (answer === undefined) throw new Error("no worker takes part");
    return answer;
  }

  /** Prepare and capture up to the cut. @returns the position of the cut, 0 where the capture failed, and its answer */
  async capture(checkpointId: string, scope: readonly Episode[]): Promise<{ answer: Answer; cut: number }> {
    await this.asked("prepare", { checkpointId });
    const { asked, command } = await this.ask("capture", { checkpointId, scope: [...scope] });
    const answer = await this.#answered(asked);
    if (answer.problem !== undefined) return { answer, cut: 0 };
    return { answer, cut: await this.cut(checkpointId, scope, command) };
  }

  /** The cut of a capture stands. @returns its position */
  cut(checkpointId: string, scope: readonly Episode[], command: number): Promise<number> {
    const data = { command, checkpointId, stream: this.log.stream, scope: [...scope], holdings: [] };
    return this.control({ type: "checkpoint.captured", data });
  }

  async resume(checkpointId: string): Promise<void> {
    await this.control({ type: "checkpoint.resumed", data: { command: null, checkpointId, reason: "command" } });
    await this.asked("resume", { checkpointId });
    await this.control({ type: "resume.ended", data: { command: null, checkpointId } });
  }

  /** A whole checkpoint. @returns the position of its cut */
  async checkpoint(checkpointId: string, scope: readonly Episode[]): Promise<number> {
    const { cut } = await this.capture(checkpointId, scope);
    await this.asked("commit", { checkpointId });
    await this.resume(checkpointId);
    return cut;
  }

  /** Restores `origins` from `source` as the attempts after, here and everywhere. */
  async restore(restoreId: string, source: string, cut: number, origins: readonly Episode[]): Promise<Answer> {
    const { answer, end } = await this.beginRestore(restoreId, source, cut, origins);
    await end();
    return answer;
  }

  /** A restore up to the server's answer. @returns it, and what ends the restore: `problem` is another participant's */
  async beginRestore(restoreId: string, source: string, cut: number, origins: readonly Episode[]) {
    const assignments = origins.map(({ rollout, attempt }) => ({ rollout, from: attempt, to: attempt + 1 }));
    const { role, instance, worker } = writer;
    const adoptions = [...this.#lost].map((of) => ({ role, instance, worker, of }));
    const order = { source, cut: { [this.log.stream]: cut }, assignments, adoptions };
    const data = { command: this.#command + 1, checkpointId: restoreId };
    await this.control({ type: "restore.started", data: { ...data, ...order } });
    const answer = await this.asked("restore", { checkpointId: restoreId, ...order });
    const end = async (problem = answer.problem): Promise<void> => {
      if (problem === undefined) {
        await this.control({ type: "restore.installed", data: { ...data, source, receipt: [] } });
      } else await this.control({ type: "restore.failed", data: { ...data, source, problem } });
      await this.resume(restoreId);
    };
    return { answer, end };
  }

  async mark(...rollouts: Episode[]): Promise<void> {
    await this.control({ type: "rollouts.marked", data: { command: this.#command + 1, rollouts } });
  }

  async retire(...rollouts: Episode[]): Promise<Answer> {
    await this.mark(...rollouts);
    return this.asked("retire", { rollouts });
  }

  async release(checkpointId: string, kept: string[], dropped: string[]): Promise<Answer> {
    const data = { command: this.#command + 1, checkpointId, kept, dropped };
    await this.control({ type: "checkpoint.releasing", data });
    return this.asked("release", { checkpointId, kept, dropped });
  }

  // The environment and the agent.

  /** @throws HoldpointError of the reply's problem */
  async rpc(episode: Episode, name: string, body: object = {}): Promise<unknown> {
    const subject = rpcSubject(this.run, episode, "resources", name);
    const text = JSON.stringify({ to: writer.instance, ...body });
    for (;;) {
      const bytes = await this.#asking.request(subject, text, { timeoutMs: patience.timeout });
      const reply = RpcReply.parse(JSON.parse(new TextDecoder().decode(bytes)));
      if (reply.ok) return reply.data;
      const { code, message } = reply.problem;
      if (!message.includes("does not take part yet")) throw new HoldpointError(code, message);
    }
  }

  async seed(episode: Episode, seed: z.infer<z.ZodJSONSchema> = { target: 3 }): Promise<SeedReply> {
    const sessionId = `s-${episode.rollout}`;
    return SeedReply.parse(await this.rpc(episode, "seed", { ...episode, sessionId, seed }));
  }

  /** A seed of which the access is needed. */
  async granted(episode: Episode): Promise<Access> {
    const { access } = await this.seed(episode);
    if (access === undefined) throw new Error("the seed reply carries no access");
    return access;
  }

  async grant(episode: Episode): Promise<Access> {
    return GrantReply.parse(await this.rpc(episode, "grant")).access;
  }

  /** The text of a direct call's result. */
  async tool(
    episode: Episode,
    call: `${number}/${number}`,
    name: string,
    input: object | string = {},
  ): Promise<string> {
    const [turn, index] = call.split("/").map(Number);
    const text = typeof input === "string" ? input : JSON.stringify(input);
    const reply = await this.rpc(episode, "tool", { turn, index, name, arguments: text });
    return ToolReply.parse(reply).result.text ?? "";
  }

  async verify(episode: Episode): Promise<unknown> {
    return JSON.parse(VerifyReply.parse(await this.rpc(episode, "verify")).verdict.text ?? "");
  }

  // What became of it.

  /** Of all workers that there are or were, unless some are named. */
  async all(workers: Iterable<string> = [...this.#workers, ...this.#lost]): Promise<readonly Event[]> {
    const events: Event[] = [];
    const upTo = await this.log.lastSequence();
    const subjects = [...workers].map((worker) => logSubject(this.run, { ...writer, worker }));
    await this.log.read({ upTo, subjects }, (message) => {
      events.push(...decodeEvents(message, schema).events.map(({ event }) => event));
    });
    return events;
  }

  /** The data of all events of a type. */
  async events(type: Event["type"]): Promise<readonly Readonly<Record<string, unknown>>[]> {
    return (await this.all()).flatMap((event) => (event.type === type ? [event.data] : []));
  }

  /** Everything in the stream, as text. */
  async text(): Promise<string> {
    const texts: string[] = [];
    await this.log.read({ upTo: await this.log.lastSequence() }, ({ body, subject }) => {
      texts.push(subject, new TextDecoder().decode(body));
    });
    return texts.join("\n");
  }
}
