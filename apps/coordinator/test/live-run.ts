/** A run on a real broker: coordinators as processes, and participants that are simulated over NATS. */
import { type BrokerUser, type RunningBroker, startBroker } from "@holdpoint/broker";
import { decodeEvents, type EventLog, eventSchema, parseJson } from "@holdpoint/eventsourcing";
import { type Connection, connectTo, openLog, publishCommand } from "@holdpoint/jetstream";
import {
  commandSubject,
  ControlEvent,
  controlSubject,
  type Operation,
  Outcome,
  outcomeSubject,
  type Role,
  serviceSubject,
} from "@holdpoint/schemas";
import { joinRun, type SimulatedProcess, type SimulatedSession } from "@holdpoint/testing";
import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const controlEvents = eventSchema(ControlEvent);
const program = fileURLToPath(new URL("../src/main.ts", import.meta.url));

/** What `look` finds, once it finds something. */
export async function eventually<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
  const end = performance.now() + 60_000;
  while (performance.now() < end) {
    const found = await look();
    if (found !== undefined) return found;
    await pause(10);
  }
  throw new Error(`not within a minute: ${what}`);
}

/** A coordinator as the process that it is. */
export class CoordinatorProcess {
  readonly child: ChildProcess;
  output = "";

  constructor(env: Readonly<Record<string, string>>) {
    this.child = spawn(process.execPath, [program], { env, stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.on("data", (chunk: Buffer) => void (this.output += chunk.toString()));
    }
  }

  async says(phrase: string): Promise<void> {
    await eventually(`the coordinator says ${phrase}: ${this.output}`, async () =>
      this.output.includes(phrase) ? true : undefined,
    );
  }

  get isRunning(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  /** Whether it has said that it leads as `incarnation`. */
  led(incarnation: string): boolean {
    const lines = this.output.split("\n").filter((line) => line.includes("coordinator leads"));
    return lines.some((line) => line.includes(`"leader":"${incarnation}"`));
  }

  /** The code with which it ends, or the signal. */
  async ended(): Promise<number | string> {
    if (this.isRunning) await once(this.child, "exit");
    return this.child.exitCode ?? this.child.signalCode ?? "";
  }

  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<number | string> {
    this.child.kill(signal);
    return this.ended();
  }
}

export class LiveRun {
  readonly broker: RunningBroker;
  readonly run: string;
  /** Further settings of the coordinators that are started from here on. */
  settings: Readonly<Record<string, string>> = {};
  readonly participants: SimulatedProcess[] = [];
  readonly #connections: Connection[] = [];
  readonly #coordinators: CoordinatorProcess[] = [];
  readonly #stopped = new AbortController();
  #operator: Connection | undefined;

  constructor(broker: RunningBroker, run: string) {
    this.broker = broker;
    this.run = run;
  }

  static async start(run: string): Promise<LiveRun> {
    return new LiveRun(await startBroker(), run);
  }

  environment(): Record<string, string> {
    const { user, password } = this.broker.credentialsOf("coordinator");
    const { PATH = "" } = process.env;
    return {
      PATH,
      HOLDPOINT_RUN: this.run,
      NATS_URL: this.broker.url,
      NATS_USER: user,
      NATS_PASSWORD: password,
      HOLDPOINT_MONITOR_URL: this.broker.monitorUrl,
      ...this.settings,
    };
  }

  /** Starts a coordinator, which leads. */
  async coordinator(): Promise<CoordinatorProcess> {
    return this.#start("coordinator leads");
  }

  /** Starts a coordinator where another leads. */
  async standby(): Promise<CoordinatorProcess> {
    return this.#start("coordinator stands by");
  }

  async #start(says: string): Promise<CoordinatorProcess> {
    const coordinator = new CoordinatorProcess(this.environment());
    this.#coordinators.push(coordinator);
    await coordinator.says(says);
    return coordinator;
  }

  /** The process that leads, by the log. */
  async leader(): Promise<CoordinatorProcess> {
    return eventually("a leader among those that run", async () => {
      const incarnation = await this.leading();
      return this.#coordinators.find((process) => process.isRunning && process.led(incarnation));
    });
  }

  /** The incarnation that leads, by the log. */
  async leading(): Promise<string> {
    const starts = (await this.control()).filter(({ type }) => type.startsWith("coordinator.st"));
    const last = starts.at(-1);
    return last?.type === "coordinator.started" ? last.data.incarnation : "";
  }

  async connect(user: BrokerUser): Promise<Connection> {
    const credentials = this.broker.credentialsOf(user);
    const connection = await connectTo({ url: this.broker.url, name: "test", ...credentials });
    this.#connections.push(connection);
    return connection;
  }

  async operator(): Promise<Connection> {
    this.#operator ??= await this.connect("operator");
    return this.#operator;
  }

  async log(): Promise<EventLog> {
    return openLog(await this.operator(), this.run);
  }

  /** A participant that obeys its gate over NATS. */
  async join(role: Role, sessions: readonly SimulatedSession[]): Promise<SimulatedProcess> {
    const options = { role, instance: `${role}1`, worker: "0", mode: "exported" as const };
    const joined = await joinRun(await this.connect(role), this.run, options);
    const participant = joined.process;
    participant.sessions = [...sessions];
    this.participants.push(participant);
    this.#stopped.signal.addEventListener("abort", () => void joined.stop());
    return participant;
  }

  /** Fire and forget, as `nats pub` does it. */
  async publish(operation: Operation | (string & {}), body: string): Promise<number> {
    const subject = `hp.${this.run}.cmd.${operation}`;
    return publishCommand(await this.operator(), this.run, { subject, body, messageId: randomUUID() });
  }

  async command(operation: Operation, body: object): Promise<number> {
    const subject = commandSubject(this.run, operation);
    const draft = { subject, body: JSON.stringify(body), messageId: randomUUID() };
    return publishCommand(await this.operator(), this.run, draft);
  }

  async outcome(command: number): Promise<Outcome> {
    const log = await this.log();
    const message = await eventually(`outcome ${command}`, () => log.lastOn(outcomeSubject(this.run, command)));
    const json = parseJson(message.body);
    return Outcome.parse(json.ok ? json.value : undefined);
  }

  /** As a request to the service. A status is asked again: the broker may hand it to a process that has just died. */
  async request(operation: Operation, body: object): Promise<Outcome> {
    if (operation !== "status") return this.#ask(operation, body, 60_000);
    return eventually("a status", () => this.#ask(operation, body, 5_000).catch(() => undefined));
  }

  async #ask(operation: Operation, body: object, timeoutMs: number): Promise<Outcome> {
    const operator = await this.operator();
    const bytes = await operator.request(serviceSubject(this.run, operation), JSON.stringify(body), { timeoutMs });
    const json = parseJson(bytes);
    return Outcome.parse(json.ok ? json.value : undefined);
  }

  async control(): Promise<ControlEvent[]> {
    const log = await this.log();
    const events: ControlEvent[] = [];
    const upTo = await log.lastSequence();
    await log.read({ upTo, subjects: [controlSubject(this.run)] }, (message) => {
      for (const { event } of decodeEvents(message, controlEvents).events) events.push(event);
    });
    return events;
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await Promise.all(this.#coordinators.map((coordinator) => coordinator.kill()));
    await Promise.all(this.#connections.map((connection) => connection.close()));
    await this.broker.stop();
  }
}
