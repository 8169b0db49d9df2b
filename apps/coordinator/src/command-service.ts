/**
 * The commands as requests: each becomes a message on `cmd`, as if its sender had published it there, and is answered with its outcome
 * when that is in the log. Any coordinator can do this, whoever leads.
 *
 * A request is somebody's who waits, and the deadline in it counts from when it is stored. So one that comes late, or cannot be stored
 * for a while, is refused: obeyed later it would close admission for nobody.
 */
import { HoldpointError } from "@holdpoint/errors";
import type { AbortSignalLike, StoredMessage } from "@holdpoint/eventsourcing";
import { commandSubject, type Operation, outcomeSubject, parseStreamSubject } from "@holdpoint/schemas";

export interface CommandServiceOptions {
  readonly run: string;
  /** Stores a command exactly once, and gives its sequence. Rejects once `signal` is aborted: not known to be stored. */
  readonly publish: (draft: CommandDraft, signal: AbortSignalLike) => Promise<number>;
  /** The last message of a subject, if there is one. */
  readonly lastOn: (subject: string) => Promise<StoredMessage | undefined>;
  readonly newMessageId: () => string;
  /** Whether what is handed over now has not waited for long: whoever asked may have gone. */
  readonly isPrompt: () => boolean;
  /** How long storing a command is tried, in milliseconds. */
  readonly storeWithinMs: number;
}

interface CommandDraft {
  readonly subject: string;
  readonly body: string;
  readonly messageId: string;
  readonly traceparent: string | undefined;
}

const decoder = new TextDecoder();

export class CommandService {
  readonly #options: CommandServiceOptions;
  readonly #waiting = new Map<number, (outcome: string) => void>();

  constructor(options: CommandServiceOptions) {
    this.#options = options;
  }

  /**
   * Answers with the outcome, as JSON. The body goes into the log as it is: what is malformed is refused there, by name.
   *
   * @throws HoldpointError `unavailable` where the request may have waited for long: nothing of it is stored; or where it could not be
   *   stored in time: not known whether it is
   */
  async obey(operation: Operation, body: Uint8Array, traceparent?: string): Promise<string> {
    const { run, lastOn, newMessageId, isPrompt } = this.#options;
    if (!isPrompt()) throw late(operation);
    const subject = commandSubject(run, operation);
    const messageId = newMessageId();
    const sequence = await this.#store({ subject, body: decoder.decode(body), messageId, traceparent }, operation);
    const outcome = new Promise<string>((resolve) => void this.#waiting.set(sequence, resolve));
    const early = await lastOn(outcomeSubject(run, sequence));
    if (early !== undefined) this.seen(early);
    return outcome;
  }

  async #store(draft: CommandDraft, operation: Operation): Promise<number> {
    const { publish, storeWithinMs } = this.#options;
    const patience = AbortSignal.timeout(storeWithinMs);
    try {
      return await publish(draft, patience);
    } catch (error) {
      if (!patience.aborted) throw error;
      const words = `${operation} could not be stored in time, and it is not known whether it is: see status, and ask again`;
      throw new HoldpointError("unavailable", words, { cause: error });
    }
  }

  /** To be told of every message of the stream. */
  seen({ subject, body }: StoredMessage): void {
    if (this.#waiting.size === 0) return;
    const address = parseStreamSubject(subject);
    if (address?.kind !== "outcome") return;
    this.#waiting.get(address.sequence)?.(decoder.decode(body));
    this.#waiting.delete(address.sequence);
  }
}

function late(operation: Operation): HoldpointError {
  const why = "this coordinator was stopped, busy or cut off, and the request may have waited for long";
  return new HoldpointError("unavailable", `${operation} is not obeyed: ${why}; nothing of it is stored: ask again`);
}
