/** A connection of one role to a run, and what it appends. */
import { type BrokerUser, type RunningBroker } from "@holdpoint/broker";
import type { BlobStore, EventLog } from "@holdpoint/eventsourcing";
import { type Connection, connectTo, openBlobs, openLog } from "@holdpoint/jetstream";
import { LogWriter, sha256 } from "@holdpoint/participant";
import type { LogEventOf, WriterRole } from "@holdpoint/schemas";

export interface Seat {
  readonly connection: Connection;
  readonly log: EventLog;
  readonly blobs: BlobStore;
}

export async function connectAs(broker: RunningBroker, user: BrokerUser, run: string): Promise<Seat> {
  const { password } = broker.credentialsOf(user);
  const connection = await connectTo({ url: broker.url, user, password, name: user });
  return { connection, log: openLog(connection, run), blobs: openBlobs(connection, run, sha256) };
}

let lives = 0;

/** A writer of the role's log that begins with `first`. */
export async function writerOf<Role extends Exclude<WriterRole, "trainer">>(
  { log }: Seat,
  run: string,
  role: Role,
): Promise<LogWriter<LogEventOf<Role>>> {
  const announced = {
    type: "participant.announced",
    data: { mode: "exported", endpoint: null, lastAtMs: null },
  } as const;
  const options = {
    log,
    run,
    writer: { role, instance: "main", worker: "0" },
    incarnation: `stub-${role}-${lives++}`,
    now: () => Date.now(),
    applied: () => {},
    fenced: () => {},
  };
  const { writer } = await LogWriter.claim<LogEventOf<Role>>(options, () => announced as LogEventOf<Role>);
  return writer;
}
