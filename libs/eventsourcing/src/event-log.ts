/**
 * The port to where the events rest: one stream, a total order, one writer for each subject (L1).
 *
 * A refused expectation is a result, not an error: the caller decides whether it was fenced. Implemented on JetStream by
 * `@holdpoint/jetstream`, and in memory here; both pass one contract suite.
 */

/** A message as it rests in the stream. */
export interface StoredMessage {
  /** Its position in the stream, from 1. */
  readonly sequence: number;
  readonly subject: string;
  /** The stream's timestamp, epoch milliseconds with fractions. */
  readonly timeMs: number;
  /** Given by its writer; empty where there is none. */
  readonly messageId: string;
  /** Whether its writer marked it as a concern of the control plane. */
  readonly controlPlane: boolean;
  /** The span of its writer (`traceparent` of W3C Trace Context), where it names one. */
  readonly traceparent?: string | undefined;
  readonly body: Uint8Array;
}

/** That `subject`, always exact, ends at `sequence` (0: it is empty). */
export interface Expectation {
  readonly subject: string;
  readonly sequence: number;
}

export interface Draft {
  readonly subject: string;
  readonly body: string;
  /** Unique for the run: by it a writer knows its own message again after a lost acknowledgement. */
  readonly messageId: string;
  readonly controlPlane?: boolean;
  readonly expected: Expectation;
}

/** The sequence of the (last) message, or that an expectation did not hold and nothing was stored. */
export type AppendResult = { readonly stored: true; readonly sequence: number } | { readonly stored: false };

export interface ReadOptions {
  /** The first sequence wanted. Default 1. */
  readonly from?: number;
  /** The last sequence wanted; everything up to it is delivered, or the read fails (L15). */
  readonly upTo: number;
  /** Filter subjects; absent: all. */
  readonly subjects?: readonly string[];
}

export interface TailOptions {
  readonly from: number;
  readonly subjects?: readonly string[];
}

/** A running tail. */
export interface Tail {
  /** The last sequence delivered, or `from - 1`. */
  readonly last: number;
  /**
   * Settles when it ends: fulfilled after `stop`; rejected with `invalid_checkpoint_state` where the stream is not the one
   * that it was (L15), with `unavailable` where the connection was closed, with what `deliver` threw.
   */
  readonly ended: Promise<void>;
  stop(): Promise<void>;
}

export interface EventLog {
  readonly stream: string;

  /**
   * Stores `draft` exactly once, over timeouts, reconnects and restarts of the server.
   *
   * @throws HoldpointError `unavailable` where the stream refuses writes, for example because its disk is full; it is
   *   not known to be stored, and the same draft may be appended again
   */
  append(draft: Draft, signal?: AbortSignalLike): Promise<AppendResult>;

  /** Stores all of `drafts` (1 to 1,000) or none. No draft's expectation may be about a subject that an earlier one writes. */
  appendBatch(drafts: readonly Draft[], signal?: AbortSignalLike): Promise<AppendResult>;

  /** The last message on an exact subject, read from the leader. */
  lastOn(subject: string): Promise<StoredMessage | undefined>;

  /** @throws HoldpointError `not_found` where there is no such message */
  get(sequence: number): Promise<StoredMessage>;

  /** The last sequence of the stream, read from the leader; 0 where it is empty. */
  lastSequence(): Promise<number>;

  /**
   * Delivers every message from `from` up to exactly `upTo`, in order.
   *
   * @throws HoldpointError `invalid_checkpoint_state` where the stream ends before `upTo` or begins after `from`
   */
  read(options: ReadOptions, deliver: (message: StoredMessage) => void): Promise<void>;

  /** Delivers every message from `from` on, in order, without gaps or repeats, over reconnects, until it is stopped. */
  tail(options: TailOptions, deliver: (message: StoredMessage) => void): Promise<Tail>;
}

/** What of an `AbortSignal` a port needs; pure packages know no platform. */
export interface AbortSignalLike {
  readonly aborted: boolean;
  addEventListener(type: "abort", listener: () => void): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

/** Where texts rest that are too large for an event, by their digest. */
export interface BlobStore {
  /** Returns once the text is durable. The same text again is harmless. */
  put(text: string): Promise<string>;
  /** @throws HoldpointError `invalid_checkpoint_state` where it is missing or its digest differs */
  get(digest: string): Promise<string>;
  has(digest: string): Promise<boolean>;
}

/**
 * Where snapshots of folds rest (L14): the latest of each name. An optimisation, and never trusted for more: what is missing,
 * damaged, of another version or ahead of the log counts as none, and the log is folded from its start.
 */
export interface SnapshotStore {
  save(name: string, bytes: Uint8Array): Promise<void>;
  /** The latest that was saved whole; undefined where there is none. */
  load(name: string): Promise<Uint8Array | undefined>;
}
