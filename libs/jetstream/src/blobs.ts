/**
 * Texts by their digest, each in as many messages as it needs, in a stream of its own beside the log.
 *
 * `hpb.<run>.<digest>.<part>`: part 0 is written last and says in its message id how many there are, so a text is there whole or
 * not at all. One message for a small text costs one fsync; the client's object store takes three round trips.
 */
import { HoldpointError } from "@holdpoint/errors";
import type { BlobStore } from "@holdpoint/eventsourcing";
import { blobBucket, blobSubject } from "@holdpoint/schemas";
import { Appender, fetchMessage, type OnTrouble } from "./append.ts";
import type { Connection } from "./connection.ts";
import type { LogOptions } from "./log.ts";

/** UTF-16 units of a part: at three bytes each it stays below a message's limit. */
const partUnits = 256 * 1024;

/**
 * The blobs of `run`. As with the log, everything waits for the broker for as long as the connection is open.
 *
 * @param hash the digest of a text, by which it is asked for
 * @param options.onTrouble as for the log
 */
export function openBlobs(
  connection: Connection,
  run: string,
  hash: (text: string) => string,
  { onTrouble = () => {} }: LogOptions = {},
): BlobStore {
  return new JetStreamBlobs(run, hash, { connection, onTrouble });
}

class JetStreamBlobs implements BlobStore {
  readonly #connection: Connection;
  readonly #run: string;
  readonly #hash: (text: string) => string;
  readonly #stream: string;
  readonly #appender: Appender;

  constructor(
    run: string,
    hash: (text: string) => string,
    { connection, onTrouble }: { readonly connection: Connection; readonly onTrouble: OnTrouble },
  ) {
    this.#connection = connection;
    this.#run = run;
    this.#hash = hash;
    this.#stream = blobBucket(run);
    this.#appender = new Appender(connection, this.#stream, onTrouble);
  }

  async put(text: string): Promise<string> {
    const digest = this.#hash(text);
    const parts = split(text);
    if (parts.length > 1 && (await this.has(digest))) return digest;
    for (let part = parts.length - 1; part >= 0; part--) {
      const subject = blobSubject(this.#run, digest, part);
      const messageId = `${digest}-${part}-${parts.length}`;
      // refused where it is there already: a digest names one text
      await this.#appender.append({ subject, body: parts[part] ?? "", messageId, expected: { subject, sequence: 0 } });
    }
    return digest;
  }

  async get(digest: string): Promise<string> {
    const first = await this.#part(digest, 0);
    const count = first === undefined ? 0 : countOf(first.messageId);
    const parts = [first];
    for (let part = 1; part < count; part++) parts.push(await this.#part(digest, part));
    const text = parts.map((part) => (part === undefined ? "" : decoder.decode(part.body))).join("");
    if (first !== undefined && this.#hash(text) === digest) return text;
    const what = first === undefined ? "is missing" : "is damaged";
    throw new HoldpointError("invalid_checkpoint_state", `the blob ${digest} ${what} in ${this.#stream}`, {
      details: { digest },
    });
  }

  async has(digest: string): Promise<boolean> {
    return (await this.#part(digest, 0)) !== undefined;
  }

  #part(digest: string, part: number) {
    return fetchMessage(this.#connection, this.#stream, { last_by_subj: blobSubject(this.#run, digest, part) });
  }
}

const decoder = new TextDecoder();

function countOf(messageId: string): number {
  return Number(messageId.split("-").at(-1));
}

/** `text` in parts, none of which ends within a character. */
function split(text: string): readonly string[] {
  const parts: string[] = [];
  for (let from = 0; from < text.length || parts.length === 0;) {
    const end = from + partUnits;
    const isHigh = (text.codePointAt(end - 1) ?? 0) > 0xffff;
    const to = isHigh ? end - 1 : end;
    parts.push(text.slice(from, to));
    from = to;
  }
  return parts;
}
