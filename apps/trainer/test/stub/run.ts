/** A run for a trainer: a broker, the stubs, the trainer's process, and what its log says in the end. */
import { brokerEnvironment, type RunningBroker } from "@holdpoint/broker";
import { decodeEvents, type EventLog, eventSchema, type StoredMessage } from "@holdpoint/eventsourcing";
import { ensureStream, publishCommand } from "@holdpoint/jetstream";
import {
  commandSubject,
  ControlEvent,
  controlSubject,
  filters,
  logEvents,
  type LogEventOf,
  type Operation,
} from "@holdpoint/schemas";
import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import * as z from "zod";
import { Final } from "../final.ts";
import { StubCoordinator } from "./coordinator.ts";
import { Episodes, type EpisodesOptions, keyOf } from "./episodes.ts";
import { connectAs, type Seat, writerOf } from "./process.ts";

const main = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
const ConsumerInfo = z.object({ num_pending: z.int(), num_ack_pending: z.int() });
const trainerEvents = eventSchema(logEvents.trainer);
const controlEvents = eventSchema(ControlEvent);
const environmentEvents = eventSchema(logEvents.environment);
/** Halves what starting a process costs; gone with this one. */
const compileCache = mkdtempSync(join(tmpdir(), "trainer-test-cache-"));
process.once("exit", () => rmSync(compileCache, { recursive: true, force: true }));
let runs = 0;

export type Settings = Readonly<Record<string, string>>;
export type Condition = (message: StoredMessage) => boolean;

/** A message whose subject begins with `subject`, after the run's name, and whose body has `text`. */
export function saying(subject: string, text = ""): Condition {
  return (message) =>
    message.subject.split(".").slice(2).join(".").startsWith(subject) && bodyOf(message).includes(text);
}

function bodyOf({ body }: StoredMessage): string {
  return new TextDecoder().decode(body);
}

export interface StubRunOptions extends Pick<EpisodesOptions, "failing" | "torn" | "turnMs" | "heldAfter"> {
  readonly settings?: Settings;
}

export class StubRun {
  readonly run: string;
  readonly stateDir: string;
  readonly episodes: Episodes;
  readonly coordinator: StubCoordinator;
  readonly log: EventLog;
  readonly #broker: RunningBroker;
  readonly #seats: readonly Seat[];
  readonly #settings: Settings;
  #child: ChildProcess | undefined;
  #living = 0;
  /** What the trainer's processes printed. */
  output = "";

  private constructor(parts: {
    run: string;
    broker: RunningBroker;
    seats: readonly Seat[];
    log: EventLog;
    episodes: Episodes;
    coordinator: StubCoordinator;
    settings: Settings;
  }) {
    this.run = parts.run;
    this.#broker = parts.broker;
    this.#seats = parts.seats;
    this.log = parts.log;
    this.episodes = parts.episodes;
    this.coordinator = parts.coordinator;
    this.#settings = parts.settings;
    this.stateDir = mkdtempSync(join(tmpdir(), "trainer-test-"));
  }

  static async start(broker: RunningBroker, { settings = {}, ...options }: StubRunOptions = {}): Promise<StubRun> {
    const run = `trainer-${process.pid}-${runs++}`;
    const deciding = await connectAs(broker, "coordinator", run);
    await ensureStream(deciding.connection, run, { maxBytes: 2 ** 24, maxBlobBytes: 2 ** 24 });
    const environment = await connectAs(broker, "environment", run);
    const model = await connectAs(broker, "model", run);
    const writers = {
      environment: await writerOf(environment, run, "environment"),
      model: await writerOf(model, run, "model"),
    };
    const episodes = new Episodes({ run, environment, model, writers, ...options });
    const coordinator = new StubCoordinator(deciding, run, episodes);
    await episodes.serve();
    await coordinator.serve();
    const seats = [deciding, environment, model];
    return new StubRun({ run, broker, seats, log: deciding.log, episodes, coordinator, settings });
  }

  /** Runs the trainer; episodes go on while it lives. @returns its exit code; -1: it was killed */
  async train(settings: Settings = {}): Promise<number> {
    const child = spawn(process.execPath, [main], {
      stdio: ["ignore", "pipe", "pipe"],
      env: {
        ...brokerEnvironment(this.#broker, "trainer"),
        NODE_COMPILE_CACHE: compileCache,
        HOLDPOINT_RUN: this.run,
        HOLDPOINT_STATE_DIR: this.stateDir,
        HOLDPOINT_ROLLOUTS: "8",
        HOLDPOINT_SIBLINGS: "2",
        HOLDPOINT_CHECKPOINT_EVERY_MS: "60",
        ...this.#settings,
        ...settings,
      },
    });
    this.#child = child;
    this.#living += 1;
    const from = (await this.log.lastSequence()) + 1;
    const tail = await this.log.tail({ from, subjects: [filters.logsOf(this.run, "trainer")] }, () =>
      this.episodes.open(),
    );
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (this.output += String(data)));
    const [code] = await once(child, "exit");
    this.#living -= 1;
    await tail.stop();
    if (this.#living === 0) await this.episodes.close();
    return typeof code === "number" ? code : -1;
  }

  /** Runs the trainer to its end. @throws with what it printed, where that is not a good one */
  async finish(settings: Settings = {}): Promise<Final> {
    const code = await this.train(settings);
    if (code !== 0) throw new Error(`exit code ${code}\n${this.output}`);
    return Final.parse(JSON.parse(readFileSync(join(this.stateDir, "final.json"), "utf8")));
  }

  kill(): void {
    this.#child?.kill("SIGKILL");
  }

  /**
   * Starts the trainer and kills it as soon as a message that was not there before holds `condition`.
   *
   * @param everything whether all that runs dies with it
   * @returns whether it was killed; else it came to its end before
   * @throws with what it printed, where it ends badly
   */
  async killAt(condition: Condition, settings: Settings = {}, everything = false): Promise<boolean> {
    const from = (await this.log.lastSequence()) + 1;
    let isDead = false;
    const tail = await this.log.tail({ from }, (message) => {
      if (isDead || !condition(message)) return;
      isDead = true;
      this.kill();
      if (everything) this.episodes.live.clear();
    });
    const code = await this.train(settings);
    await tail.stop();
    if (code > 0) throw new Error(`exit code ${code}\n${this.output}`);
    return code === -1;
  }

  /** Returns once so many messages have held `condition`. */
  async seen(condition: Condition, times = 1): Promise<void> {
    let left = times;
    await new Promise<void>((resolve, reject) => {
      const look = (message: StoredMessage) => {
        if (condition(message)) left -= 1;
        if (left <= 0) resolve();
      };
      this.log.tail({ from: 1 }, look).catch(reject);
    });
  }

  /** Every episode that was ever opened, as `rollout/attempt`. */
  async opened(): Promise<readonly string[]> {
    const opened: string[] = [];
    const upTo = await this.log.lastSequence();
    await this.log.read({ upTo, subjects: [filters.logsOf(this.run, "environment")] }, (message) => {
      for (const { event } of decodeEvents(message, environmentEvents).events) {
        if (event.type === "episode.opened") opened.push(keyOf(event.data));
      }
    });
    return opened;
  }

  /** The attempts that restores have installed, as `rollout/attempt`. */
  async installed(): Promise<readonly string[]> {
    const installed: string[] = [];
    const upTo = await this.log.lastSequence();
    await this.log.read({ upTo, subjects: [controlSubject(this.run)] }, (message) => {
      for (const { event } of decodeEvents(message, controlEvents).events) {
        if (event.type !== "restore.started") continue;
        installed.push(...event.data.assignments.map(({ rollout, to }) => keyOf({ rollout, attempt: to })));
      }
    });
    return installed;
  }

  /** What trainers of the run have said. */
  async said(): Promise<readonly LogEventOf<"trainer">[]> {
    const events: LogEventOf<"trainer">[] = [];
    const upTo = await this.log.lastSequence();
    await this.log.read({ upTo, subjects: [filters.logsOf(this.run, "trainer")] }, (message) => {
      events.push(...decodeEvents(message, trainerEvents).events.map(({ event }) => event));
    });
    return events;
  }

  /** Results that the trainer's consumer has not been told to be taken care of. */
  async unacknowledged(): Promise<number> {
    const { connection } = this.#seats[0] ?? {};
    const body = await connection?.request(`$JS.API.CONSUMER.INFO.${this.log.stream}.trainer-main`, "");
    const { num_pending: pending, num_ack_pending: inHand } = ConsumerInfo.parse(
      JSON.parse(new TextDecoder().decode(body)),
    );
    return pending + inHand;
  }

  /** Checkpoints that trainers of the run have said to be saved, in order. */
  async savedCheckpoints(): Promise<readonly string[]> {
    return (await this.said()).flatMap((event) =>
      event.type === "trainer.saved" && event.data.checkpointId !== null ? [event.data.checkpointId] : [],
    );
  }

  /** What somebody else commands; returns once it is done. */
  async command(operation: Operation, body: object): Promise<void> {
    const subject = commandSubject(this.run, operation);
    const draft = { subject, body: JSON.stringify(body), messageId: randomUUID() };
    const [seat] = this.#seats;
    if (seat === undefined) throw new Error("nobody is seated");
    const sequence = await publishCommand(seat.connection, this.run, draft);
    await this.seen(saying(`outcome.${sequence}`));
  }

  /** The operations that were commanded. */
  async commanded(): Promise<readonly string[]> {
    const subjects: string[] = [];
    const upTo = await this.log.lastSequence();
    await this.log.read({ upTo, subjects: [filters.commands(this.run)] }, ({ subject }) => {
      subjects.push(subject.slice(`hp.${this.run}.cmd.`.length));
    });
    return subjects;
  }

  async stop(): Promise<void> {
    this.kill();
    for (const { connection } of this.#seats) await connection.close();
    rmSync(this.stateDir, { recursive: true, force: true });
  }
}
