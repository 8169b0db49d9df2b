/** A run on a log in memory: participants that obey as soon as they are asked, and coordinators that ask each other at once. */
import { decodeEvents, eventSchema, MemoryLog, parseJson, type SnapshotStore } from "@holdpoint/eventsourcing";
import { sha256 } from "@holdpoint/participant";
import { ControlEvent, controlSubject, Outcome, outcomeSubject } from "@holdpoint/schemas";
import { SimulatedProcess } from "@holdpoint/testing";
import type { CommandService } from "../src/command-service.ts";
import { Coordinator, type CoordinatorOptions } from "../src/coordinator.ts";
import { FoldSnapshots } from "../src/fold-snapshot.ts";
import type { LeaderSigns } from "../src/leader-signs.ts";

export const run = "demo";
export const promise = { serverVersion: "2.15.1", syncAlways: true, replicas: 1, persistMode: "default" };
const controlEvents = eventSchema(ControlEvent);
const roles = ["environment", "model", "agent", "resources"] as const;

type Standing = Parameters<NonNullable<CoordinatorOptions["stands"]>>[0];

/** A coordinator that runs, and what it has told of itself. */
export interface Running {
  readonly coordinator: Coordinator;
  readonly standings: Standing[];
  /** Settles when its run ends. */
  readonly end: Promise<void>;
}

/** Looks again and again until `isSo`. */
export async function until(isSo: () => boolean): Promise<void> {
  const end = performance.now() + 30_000;
  while (!isSo()) {
    if (performance.now() > end) throw new Error(`not within half a minute: ${isSo.toString()}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

export class MemoryRun {
  nowMs = 1_000_000;
  readonly log = new MemoryLog(`HP_${run}`, () => this.nowMs);
  readonly participants: SimulatedProcess[] = [];
  readonly saved = new Map<string, Uint8Array>();
  /** Incarnations that answer; of `hung` ones it is known that they listen. */
  readonly answering = new Set<string>();
  readonly hung = new Set<string>();
  #commands = 0;
  #coordinators = 0;

  static async joined(): Promise<MemoryRun> {
    const joined = new MemoryRun();
    await joined.#join();
    return joined;
  }

  async #join(): Promise<void> {
    for (const role of roles) {
      const options = { role, instance: role, worker: "0", mode: "exported" as const };
      const participant = new SimulatedProcess(run, this.log, options);
      await participant.start();
      this.participants.push(participant);
      let queue = Promise.resolve();
      const obeyAll = async () => {
        while (await participant.obey());
      };
      await this.log.tail({ from: participant.startedAt + 1, subjects: [controlSubject(run)] }, (message) => {
        participant.see(decodeEvents(message, controlEvents).events);
        queue = queue.then(obeyAll, obeyAll);
      });
    }
  }

  readonly signs: LeaderSigns = {
    answer: async (incarnation) => {
      this.answering.add(incarnation);
      return { stop: () => void this.answering.delete(incarnation) };
    },
    ask: async (incarnation) => {
      if (this.hung.has(incarnation)) return "silent";
      return this.answering.has(incarnation) ? "alive" : "absent";
    },
  };

  readonly store: SnapshotStore = {
    save: async (name, bytes) => void this.saved.set(name, bytes),
    load: async (name) => this.saved.get(name),
  };

  /** Starts the next coordinator, `c1`, `c2` and so on. */
  start(changes: Partial<CoordinatorOptions> = {}, service?: CommandService): Running {
    this.#coordinators += 1;
    const standings: Standing[] = [];
    const coordinator = new Coordinator({
      run,
      log: this.log,
      incarnation: `c${this.#coordinators}`,
      promise,
      signs: this.signs,
      snapshots: new FoldSnapshots({ log: this.log, store: this.store, hash: sha256 }),
      leaseGraceMs: 600_000,
      clock: () => this.nowMs,
      hash: sha256,
      stands: (standing) => void standings.push(standing),
      ...(service !== undefined && { seen: (message) => service.seen(message) }),
      ...changes,
    });
    const end = coordinator.run();
    end.catch(() => {}); // also where no test asks
    return { coordinator, standings, end };
  }

  /** Starts the next coordinator; it leads. */
  async lead(changes: Partial<CoordinatorOptions> = {}, service?: CommandService): Promise<Running> {
    const running = this.start(changes, service);
    await until(() => running.standings.at(-1)?.status === "leads");
    return running;
  }

  async command(operation: string, body: object): Promise<number> {
    return this.publish({ subject: `hp.${run}.cmd.${operation}`, body: JSON.stringify(body), messageId: "" });
  }

  async publish({ subject, body }: { subject: string; body: string; messageId: string }): Promise<number> {
    this.#commands += 1;
    const expected = { subject: outcomeSubject(run, 0), sequence: 0 };
    const done = await this.log.append({ subject, body, messageId: `cmd-${this.#commands}`, expected });
    return done.stored ? done.sequence : 0;
  }

  async outcome(command: number): Promise<Outcome> {
    for (;;) {
      const message = await this.log.lastOn(outcomeSubject(run, command));
      if (message !== undefined) {
        const json = parseJson(message.body);
        return Outcome.parse(json.ok ? json.value : undefined);
      }
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}
