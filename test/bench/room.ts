/** A broker of its own for one measurement, with sync always, and what is needed to append to it. */
import { startBroker } from "@holdpoint/broker";
import type { EventLog } from "@holdpoint/eventsourcing";
import { type Connection, connectTo, ensureStream, openLog } from "@holdpoint/jetstream";

export interface Room {
  readonly run: string;
  readonly connection: Connection;
  readonly log: EventLog;
  readonly url: string;
  readonly user: string;
  readonly password: string;
}

/** Runs `measure` against a fresh broker, which is gone after it. */
export async function inRoom<T>(measure: (room: Room) => Promise<T>): Promise<T> {
  const broker = await startBroker();
  try {
    const { user, password } = broker.credentialsOf("coordinator");
    const connection = await connectTo({ url: broker.url, user, password, name: "bench" });
    const run = "bench";
    await ensureStream(connection, run);
    const result = await measure({ run, connection, log: openLog(connection, run), url: broker.url, user, password });
    await connection.close();
    return result;
  } finally {
    await broker.stop();
  }
}
