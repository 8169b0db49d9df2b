/**
 * One participant in a run of its own: the real coordinator commands, and everybody else is played by the kit.
 *
 * Everything goes over NATS, as the contract has it: nothing of the participant is known but what it says there.
 */
import type { Controller } from "@holdpoint/client";
import { HoldpointError } from "@holdpoint/errors";
import {
  decodeEvents,
  type EventLog,
  type EventSchema,
  eventSchema,
  parseJson,
  type Recorded,
} from "@holdpoint/eventsourcing";
import type { Connection } from "@holdpoint/jetstream";
import {
  type Command,
  controlSubject,
  ControlEvent,
  type Edges,
  type Episode,
  type Event,
  logEvents,
  logSubject,
  type Outcome,
  type Result,
  type Role,
  RpcReply,
} from "@holdpoint/schemas";
import { type JoinedProcess, joinRun } from "../joined-process.ts";
import type { SimulatedProcess } from "../simulated-process.ts";
import { type ConformanceTarget, TargetProcess } from "./target.ts";
import { must, Patience } from "./waiting.ts";

const roles: readonly Role[] = ["environment", "agent", "resources", "model"];
const controlEvents = eventSchema(ControlEvent);
/** What each role may say. */
const schemas: Readonly<Record<Role, EventSchema<Event>>> = {
  environment: eventSchema(logEvents.environment),
  agent: eventSchema(logEvents.agent),
  resources: eventSchema(logEvents.resources),
  model: eventSchema(logEvents.model),
};
const defaultPatienceMs = 30_000;
const opening: ReadonlySet<string> = new Set(["prepare", "checkpoint", "restore"]);

export interface RigOptions {
  readonly run: string;
  /** A connection as that role's user. They stay open until the caller closes them. */
  readonly connectAs: (role: Role) => Promise<Connection>;
  readonly log: EventLog;
  readonly controller: Controller;
  /** What a process of the target is told by its environment, beside its name. */
  readonly environmentOf: (role: Role) => Record<string, string>;
  readonly target: ConformanceTarget;
  /** Where the model that the kit plays serves. */
  readonly modelUrl?: string;
  /** How long it may keep the kit waiting, in milliseconds: a bound against hanging. Default: 30,000. */
  readonly patienceMs?: number;
}

export type Answered = { readonly ok: true; readonly data: unknown } | { readonly ok: false; readonly code: string };

export class ConformanceRig {
  readonly options: RigOptions;
  readonly subject: string;
  readonly patience: Patience;
  /** Called when the control subject has said something. */
  heard: () => void = () => {};
  readonly #standIns = new Map<Role, JoinedProcess>();
  readonly #processes: TargetProcess[] = [];
  #asker: Connection | undefined;
  /** What may be open. */
  #opened: string | undefined;
  #numbers = 0;

  private constructor(options: RigOptions) {
    this.options = options;
    this.patience = new Patience(options.patienceMs ?? defaultPatienceMs);
    this.subject = logSubject(options.run, { role: options.target.role, instance: "main", worker: "0" });
  }

  /** Joins the run as every role but the target's, and starts the target. Nothing of it is left running where that fails. */
  static async open(options: RigOptions): Promise<ConformanceRig> {
    const rig = new ConformanceRig(options);
    try {
      await rig.#enter();
      return rig;
    } catch (error) {
      await rig.stop();
      throw error;
    }
  }

  async #enter(): Promise<void> {
    const { run, connectAs, target, modelUrl } = this.options;
    for (const role of roles.filter((other) => other !== target.role)) {
      const named = { role, instance: "main", worker: "0", mode: "exported" as const };
      const endpoint = role === "model" && modelUrl !== undefined ? { endpoint: modelUrl } : {};
      this.#standIns.set(
        role,
        await joinRun(await connectAs(role), run, { ...named, ...endpoint }, () => this.heard()),
      );
    }
    this.#asker = await connectAs(target.role === "environment" ? "agent" : "environment");
    await this.start();
  }

  standIn(role: Role): SimulatedProcess | undefined {
    return this.#standIns.get(role)?.process;
  }

  /** Whether a checkpoint is open, as the participants that the kit plays know it. */
  get isClosed(): boolean {
    return [...this.#standIns.values()].some(({ process }) => process.gate.closed !== undefined);
  }

  /** What everybody else holds of these episodes, and says of their calls. */
  hold(episodes: readonly Episode[], edgesOf: (role: Role, episode: Episode) => Edges): void {
    for (const [role, { process }] of this.#standIns) {
      process.sessions = episodes.map(({ rollout, attempt }) => {
        return { rollout, attempt, edges: edgesOf(role, { rollout, attempt }) };
      });
    }
  }

  /** A name that nobody has used in this run. */
  newName(prefix: string): string {
    return `${prefix}${this.#numbers++}`;
  }

  /** Starts a process of the target; returns when the coordinator has let it join. */
  async start(): Promise<TargetProcess> {
    const { target, run, environmentOf } = this.options;
    const before = await this.#joins();
    const started = new TargetProcess(target, { ...environmentOf(target.role), ...nameIn(run) });
    this.#processes.push(started);
    await new Patience(defaultPatienceMs).until(
      `the ${target.role} joins run ${run}; it said: ${started.output}`,
      async () => {
        must(started.isRunning, `the ${target.role} ended before it had joined; it said: ${started.output}`);
        return (await this.#joins()) > before ? true : undefined;
      },
    );
    return started;
  }

  async kill(): Promise<void> {
    await Promise.all(this.#processes.map((process) => process.kill()));
  }

  /** Whatever is open is not any more: what comes next stands by itself. */
  async letGo(): Promise<void> {
    if (this.#opened !== undefined) await this.command({ operation: "resume", checkpointId: this.#opened });
  }

  command(command: Command): Promise<Outcome> {
    if ("checkpointId" in command && opening.has(command.operation)) this.#opened = command.checkpointId;
    return this.options.controller.command({ timeoutMs: this.options.patienceMs ?? defaultPatienceMs, ...command });
  }

  /** @throws PromiseBroken where the command did not succeed */
  async succeed(command: Command): Promise<Result> {
    const outcome = await this.command(command);
    if (outcome.ok) return outcome.result;
    must(false, `${command.operation} failed: ${outcome.problem.code}, ${outcome.problem.message}`);
    throw new Error("unreachable");
  }

  /**
   * What `ask` is answered with when it is admitted. Whoever was just told of a resume may come before the participant knows that
   * its own word of it is stored.
   */
  admitted(ask: () => Promise<Answered>): Promise<Answered> {
    return this.patience.until("it takes work again", async () => {
      const answer = await ask();
      return answer.ok || answer.code !== "admission_closed" ? answer : undefined;
    });
  }

  /** One request to it, repeated while it is away. */
  async ask(subject: string, body: object | string): Promise<Answered> {
    return this.patience.until(`an answer to ${subject}`, () => this.#once(subject, body));
  }

  async #once(subject: string, body: object | string): Promise<Answered | undefined> {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const bytes = await this.#asker?.request(subject, text, { timeoutMs: 10_000 }).catch((error: unknown) => {
      if (HoldpointError.is(error, "unavailable") || HoldpointError.is(error, "deadline_exceeded")) return undefined;
      throw error;
    });
    if (bytes === undefined) return undefined;
    const json = parseJson(bytes);
    const reply = RpcReply.safeParse(json.ok ? json.value : undefined);
    must(reply.success, `what it answered to ${subject} is no rpc reply: ${new TextDecoder().decode(bytes)}`);
    if (reply.data === undefined) return undefined;
    if (reply.data.ok) return { ok: true, data: reply.data.data };
    return reply.data.problem.code === "unavailable" ? undefined : { ok: false, code: reply.data.problem.code };
  }

  /** Everything that it has said, oldest first. @throws PromiseBroken for what the contract does not know */
  async said(): Promise<readonly Recorded<Event>[]> {
    const events: Recorded<Event>[] = [];
    const schema = schemas[this.options.target.role];
    await this.options.log.read(
      { upTo: await this.options.log.lastSequence(), subjects: [this.subject] },
      (message) => {
        const decoded = decodeEvents(message, schema);
        must(
          decoded.problems.length === 0,
          `message ${message.sequence} is not of the contract: ${decoded.problems.join()}`,
        );
        events.push(...decoded.events);
      },
    );
    return events;
  }

  /** The sequence of the last message on its log subject. */
  async lastSaid(): Promise<number> {
    return (await this.options.log.lastOn(this.subject))?.sequence ?? 0;
  }

  async control(): Promise<readonly ControlEvent[]> {
    const { log, run } = this.options;
    const events: ControlEvent[] = [];
    await log.read({ upTo: await log.lastSequence(), subjects: [controlSubject(run)] }, (message) => {
      for (const { event } of decodeEvents(message, controlEvents).events) events.push(event);
    });
    return events;
  }

  async stop(): Promise<void> {
    await this.kill();
    await Promise.all([...this.#standIns.values()].map((standIn) => standIn.stop()));
  }

  async #joins(): Promise<number> {
    const { role } = this.options.target;
    const joins = (await this.control()).filter(
      ({ type, data }) => type === "participant.joined" && data.role === role,
    );
    return joins.length;
  }
}

function nameIn(run: string): Record<string, string> {
  return { HOLDPOINT_RUN: run, HOLDPOINT_INSTANCE: "main", HOLDPOINT_WORKER: "0" };
}
