/** A broker of its own for one measurement, with sync always, and what is needed to append to it. */
import { brokerEnvironment, type BrokerUser, type RunningBroker, startBroker } from "@holdpoint/broker";
import type { EventLog } from "@holdpoint/eventsourcing";
import { type Connection, connectTo, ensureStream, openLog } from "@holdpoint/jetstream";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";

export interface Room {
  readonly run: string;
  readonly broker: RunningBroker;
  readonly connection: Connection;
  readonly log: EventLog;
  readonly url: string;
  readonly user: string;
  readonly password: string;
  /** A connection as that user, which may ask and answer what the user may. */
  readonly connectAs: (user: BrokerUser) => Promise<Connection>;
}

/** Runs `measure` against a fresh broker, which is gone after it. */
export async function inRoom<T>(measure: (room: Room) => Promise<T>): Promise<T> {
  const broker = await startBroker();
  try {
    const { user, password } = broker.credentialsOf("coordinator");
    const connection = await connectTo({ url: broker.url, user, password, name: "bench" });
    const run = "bench";
    await ensureStream(connection, run);
    const log = openLog(connection, run);
    const connections = [connection];
    const connectAs = async (name: BrokerUser) => {
      const made = await connectTo({ url: broker.url, name: `bench ${name}`, ...broker.credentialsOf(name) });
      connections.push(made);
      return made;
    };
    const result = await measure({ run, broker, connection, log, url: broker.url, user, password, connectAs });
    await Promise.all(connections.map((each) => each.close()));
    return result;
  } finally {
    await broker.stop();
  }
}

/** A coordinator of the room's run, as the process that it is. */
export class RoomCoordinator {
  readonly #child: ChildProcess;
  #output = "";

  constructor({ run, broker }: Room) {
    const main = new URL("../../apps/coordinator/src/main.ts", import.meta.url);
    const env = {
      ...process.env,
      ...brokerEnvironment(broker, "coordinator"),
      HOLDPOINT_RUN: run,
      HOLDPOINT_MONITOR_URL: broker.monitorUrl,
    };
    this.#child = spawn(process.execPath, [main.pathname], { env, stdio: ["ignore", "pipe", "inherit"] });
    this.#child.stdout?.on("data", (chunk: Buffer) => void (this.#output += chunk.toString()));
  }

  /** Returns once it has said `phrase`. */
  async says(phrase: string): Promise<void> {
    while (!this.#output.includes(phrase)) {
      if (this.#child.exitCode !== null) throw new Error(`the coordinator ended: ${this.#output}`);
      await pause(5);
    }
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    this.#child.kill(signal);
    await once(this.#child, "exit");
  }
}

/** Runs `measure` while a coordinator leads the room's run. */
export async function withCoordinator<T>(room: Room, measure: () => Promise<T>): Promise<T> {
  const coordinator = new RoomCoordinator(room);
  try {
    return await measure();
  } finally {
    await coordinator.end("SIGKILL");
  }
}
