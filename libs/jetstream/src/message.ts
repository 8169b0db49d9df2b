/** Messages of the stream, from the three forms in which the server hands them out. */
import { HoldpointError } from "@holdpoint/errors";
import type { StoredMessage } from "@holdpoint/eventsourcing";
import { controlPlaneHeader } from "@holdpoint/schemas";
import type { StoredMsg } from "@nats-io/jetstream";
import type { Msg, MsgHdrs } from "nats";

export const messageIdHeader = "Nats-Msg-Id";

/** Where a delivery stands, as its reply subject says. */
export interface Delivery {
  /** How often this message was delivered, this time included. */
  readonly count: number;
  readonly streamSequence: number;
  /** The place among all deliveries of the consumer, from 1: a hole in it is a lost message. */
  readonly consumerSequence: number;
  readonly timeMs: number;
  /** Messages that the consumer will deliver after this one, as of then. */
  readonly pending: number;
}

/** Of `$JS.ACK.<stream>.<consumer>.…`, or with `<domain>.<account>` before the stream; `undefined` where it is neither. */
export function parseDelivery(reply: string | undefined): Delivery | undefined {
  if (reply === undefined || !reply.startsWith("$JS.ACK.")) return undefined;
  const tokens = reply.split(".");
  const at = tokens.length === 9 ? 4 : 6;
  const [count, streamSequence, consumerSequence, nanos, pending] = tokens.slice(at, at + 5);
  if (nanos === undefined || pending === undefined) return undefined;
  return {
    count: Number(count),
    streamSequence: Number(streamSequence),
    consumerSequence: Number(consumerSequence),
    timeMs: millis(nanos.slice(0, -9), nanos.slice(-9)),
    pending: Number(pending),
  };
}

export function delivered(message: Msg, { streamSequence, timeMs }: Delivery): StoredMessage {
  const { subject, data, headers } = message;
  return stored({ sequence: streamSequence, subject, data, headers, timeMs });
}

/** Of an answer of `STREAM.MSG.GET`. */
export function fetched({ seq, subject, data, header, timestamp }: StoredMsg): StoredMessage {
  return stored({ sequence: seq, subject, data, headers: header, timeMs: instant(timestamp) });
}

function stored(parts: {
  readonly sequence: number;
  readonly subject: string;
  readonly data: Uint8Array;
  readonly timeMs: number;
  readonly headers: MsgHdrs | undefined;
}): StoredMessage {
  const { sequence, subject, data, timeMs, headers } = parts;
  return {
    sequence,
    subject,
    timeMs,
    messageId: headers?.get(messageIdHeader) ?? "",
    controlPlane: headers?.has(controlPlaneHeader) ?? false,
    body: data,
  };
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
