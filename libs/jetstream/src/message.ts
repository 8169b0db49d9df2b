/** Messages of the stream, from the three forms in which the server hands them out. */
import { HoldpointError } from "@holdpoint/errors";
import type { StoredMessage } from "@holdpoint/eventsourcing";
import { controlPlaneHeader } from "@holdpoint/schemas";
import type { StoredMsg } from "@nats-io/jetstream";
import { Match, type Msg, type MsgHdrs } from "nats";

export const messageIdHeader = "Nats-Msg-Id";
/** The span of whoever writes, as W3C Trace Context spells it. */
export const traceHeader = "traceparent";

/** Where a delivery stands, as its reply subject says. */
export interface Delivery {
  /** How often this message was delivered, this time included. */
  readonly count: number;
  readonly streamSequence: number;
  /** The place among all deliveries of the consumer, from 1: a hole in it is a lost message. */
  readonly consumerSequence: number;
  /** The stream's timestamp, nanoseconds since the epoch, more than a number holds exactly. */
  readonly nanos: string;
  /** Messages that the consumer will deliver after this one, as of then. */
  readonly pending: number;
}

/** Of `$JS.ACK.<stream>.<consumer>.…`, or with `<domain>.<account>` before the stream; `undefined` where it is neither. */
export function parseDelivery(reply: string | undefined): Delivery | undefined {
  if (reply === undefined || !reply.startsWith("$JS.ACK.")) return undefined;
  const tokens = reply.split(".");
  const at = tokens.length === 9 ? 4 : 6;
  const nanos = tokens[at + 3];
  if (nanos === undefined) return undefined;
  return {
    count: Number(tokens[at]),
    streamSequence: Number(tokens[at + 1]),
    consumerSequence: Number(tokens[at + 2]),
    nanos,
    pending: Number(tokens[at + 4]),
  };
}

/** What most readers never ask for costs as much as all the rest: headers and time are read when they are. */
export class DeliveredMessage implements StoredMessage {
  readonly sequence: number;
  readonly subject: string;
  readonly body: Uint8Array;
  readonly #message: Msg;
  readonly #nanos: string;

  constructor(message: Msg, { streamSequence, nanos }: Delivery) {
    this.sequence = streamSequence;
    this.subject = message.subject;
    this.body = message.data;
    this.#message = message;
    this.#nanos = nanos;
  }

  get timeMs(): number {
    return millis(this.#nanos.slice(0, -9), this.#nanos.slice(-9));
  }

  get messageId(): string {
    return this.#message.headers?.get(messageIdHeader) ?? "";
  }

  get controlPlane(): boolean {
    return this.#message.headers?.has(controlPlaneHeader) ?? false;
  }

  get traceparent(): string | undefined {
    return traceparentOf(this.#message.headers);
  }
}

/** Of an answer of `STREAM.MSG.GET`. */
export function fetched({ seq, subject, data, header, timestamp }: StoredMsg): StoredMessage {
  return {
    sequence: seq,
    subject,
    body: data,
    timeMs: instant(timestamp),
    messageId: header.get(messageIdHeader),
    controlPlane: header.has(controlPlaneHeader),
    traceparent: traceparentOf(header),
  };
}

/** The first of that name, in whatever case; `undefined` where there is none. */
export function traceparentOf(headers: MsgHdrs | undefined): string | undefined {
  return headers?.get(traceHeader, Match.IgnoreCase) || undefined;
}

/** Epoch milliseconds of an RFC 3339 time with up to nine digits of fraction: the same number as from nanoseconds. */
function instant(timestamp: string): number {
  const [, whole = "", fraction = "", zone = ""] = /^(.*?)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)$/.exec(timestamp) ?? [];
  const seconds = Date.parse(`${whole}${zone}`) / 1000;
  if (Number.isNaN(seconds)) throw new HoldpointError("unavailable", `not a time of the broker: ${timestamp}`);
  return millis(String(seconds), fraction.padEnd(9, "0"));
}

/** Nanoseconds since the epoch exceed what a number holds exactly, so seconds and the rest come apart. */
function millis(seconds: string, nanos: string): number {
  return Number(seconds) * 1000 + Number(nanos) / 1e6;
}
