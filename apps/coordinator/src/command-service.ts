/**
 * The commands as requests: each becomes a message on `cmd`, as if its sender had published it there, and is answered with its outcome
 * when that is in the log. Any coordinator can do this, whoever leads.
 */
import type { StoredMessage } from "@holdpoint/eventsourcing";
import { commandSubject, type Operation, outcomeSubject, parseStreamSubject } from "@holdpoint/schemas";

export interface CommandServiceOptions {
  readonly run: string;
  /** Stores a command exactly once, and gives its sequence. */
  readonly publish: (draft: {
    readonly subject: string;
    readonly body: string;
    readonly messageId: string;
    readonly traceparent: string | undefined;
  }) => Promise<number>;
  /** The last message of a subject, if there is one. */
  readonly lastOn: (subject: string) => Promise<StoredMessage | undefined>;
  readonly newMessageId: () => string;
}

const decoder = new TextDecoder();

export class CommandService {
  readonly #options: CommandServiceOptions;
  readonly #waiting = new Map<number, (outcome: string) => void>();

  constructor(options: CommandServiceOptions) {
    this.#options = options;
  }

  /** Answers with the outcome, as JSON. The body goes into the log as it is: what is malformed is refused there, by name. */
  async obey(operation: Operation, body: Uint8Array, traceparent?: string): Promise<string> {
    const { run, publish, lastOn, newMessageId } = this.#options;
    const subject = commandSubject(run, operation);
    const sequence = await publish({ subject, body: decoder.decode(body), messageId: newMessageId(), traceparent });
    const outcome = new Promise<string>((resolve) => void this.#waiting.set(sequence, resolve));
    const early = await lastOn(outcomeSubject(run, sequence));
    if (early !== undefined) this.seen(early);
    return outcome;
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
