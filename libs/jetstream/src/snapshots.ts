/**
 * Snapshots of folds (L14): the latest under each name, in a stream that keeps no other. They may be thrown away at any time.
 *
 * `hpf.<run>.<name>.<part>`: part 0 is written last and says in its message id how many there are and what their digest is. Parts
 * of two savings that got mixed do not have that digest, and count as none.
 */
import { HoldpointError } from "@holdpoint/errors";
import type { SnapshotStore } from "@holdpoint/eventsourcing";
import { snapshotBucket, snapshotSubject } from "@holdpoint/schemas";
import { headers, nuid } from "nats";
import { hash } from "node:crypto";
import { fetchMessage } from "./append.ts";
import { type Connection, internals } from "./connection.ts";
import { messageIdHeader } from "./message.ts";
import { exactSubject } from "./subject.ts";

const partBytes = 512 * 1024;
const timeoutMs = 5_000;

/** The snapshots of `run`. A name is one or more subject tokens. */
export function openSnapshots(connection: Connection, run: string): SnapshotStore {
  return new JetStreamSnapshots(connection, run);
}

class JetStreamSnapshots implements SnapshotStore {
  readonly #connection: Connection;
  readonly #run: string;

  constructor(connection: Connection, run: string) {
    this.#connection = connection;
    this.#run = run;
  }

  async save(name: string, bytes: Uint8Array): Promise<void> {
    const count = Math.max(1, Math.ceil(bytes.length / partBytes));
    const id = `${digestOf(bytes)}-${count}-${nuid.next()}`; // the same snapshot saved again is no repeat of the first time
    for (let part = count - 1; part >= 0; part--) {
      await this.#publish(
        snapshotSubject(this.#run, name, part),
        bytes.subarray(part * partBytes, (part + 1) * partBytes),
        `${id}-${part}`, // one id for all would make the second part a repeat of the first
      );
    }
  }

  async load(name: string): Promise<Uint8Array | undefined> {
    try {
      return await this.#load(name);
    } catch (error) {
      if (HoldpointError.is(error, "not_found")) return undefined; // its stream was thrown away
      throw error;
    }
  }

  async #load(name: string): Promise<Uint8Array | undefined> {
    const first = await this.#part(name, 0);
    if (first === undefined) return undefined;
    const [digest, count] = first.messageId.split("-");
    const bodies = [first.body];
    for (let part = 1; part < Number(count); part++)
      bodies.push((await this.#part(name, part))?.body ?? new Uint8Array());
    const bytes = Buffer.concat(bodies);
    return digestOf(bytes) === digest ? bytes : undefined;
  }

  #part(name: string, part: number) {
    const last_by_subj = exactSubject(snapshotSubject(this.#run, name, part));
    return fetchMessage(this.#connection, snapshotBucket(this.#run), { last_by_subj });
  }

  /** Once: a snapshot that was not saved is none. */
  async #publish(subject: string, body: Uint8Array, id: string): Promise<void> {
    const all = headers();
    all.set(messageIdHeader, id);
    const { nats } = internals(this.#connection);
    await this.#connection.whileConnected(`saving a snapshot to ${exactSubject(subject)}`, () =>
      nats.request(subject, body, { headers: all, timeout: timeoutMs }),
    );
  }
}

function digestOf(bytes: Uint8Array): string {
  return hash("sha256", bytes);
}
