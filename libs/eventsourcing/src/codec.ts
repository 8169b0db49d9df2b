/** Events to and from the bytes of a message. Reading never throws: what cannot be read is a problem with a place. */
import { controlPlaneTypes, Envelope, schemaVersion } from "@holdpoint/schemas";
import * as z from "zod";
import type { StoredMessage } from "./event-log.ts";

/** An event with the place where it rests. */
export interface Recorded<E> {
  readonly event: E;
  readonly sequence: number;
  /** Its place among the events of its message, from 0. */
  readonly index: number;
  readonly subject: string;
  readonly timeMs: number;
  readonly incarnation: string;
}

/** What a message held: events in order, and what of it could not be read. */
export interface Decoded<E> {
  readonly events: readonly Recorded<E>[];
  readonly problems: readonly string[];
}

/** The body of a message with `events`, and whether the control plane has to read it. */
export function encodeEvents(
  incarnation: string,
  events: readonly { readonly type: string; readonly data: object }[],
): { body: string; controlPlane: boolean } {
  const body = JSON.stringify({ schema: schemaVersion, incarnation, events });
  return { body, controlPlane: events.some(({ type }) => controlPlaneTypes.has(type)) };
}

const decoder = new TextDecoder("utf-8", { fatal: true });

/** A text that is JSON, as the value it says. */
const Json = z.codec(z.string(), z.unknown(), {
  decode(text, context) {
    try {
      const value: unknown = JSON.parse(text);
      return value;
    } catch (error) {
      context.issues.push({ code: "custom", input: text.slice(0, 80), message: `not JSON: ${String(error)}` });
      return z.NEVER;
    }
  },
  encode: (value) => JSON.stringify(value),
});

/** The JSON value that `bytes` say, or a sentence about why they say none. */
export function parseJson(bytes: Uint8Array): { ok: true; value: unknown } | { ok: false; why: string } {
  let text: string;
  try {
    text = decoder.decode(bytes);
  } catch {
    return { ok: false, why: "not UTF-8" };
  }
  const parsed = Json.safeDecode(text);
  return parsed.success ? { ok: true, value: parsed.data } : { ok: false, why: z.prettifyError(parsed.error) };
}

/** The events of `message` that `schema` knows. Types that it does not know are passed over, as readers of old code must. */
export function decodeEvents<E>(message: StoredMessage, schema: EventSchema<E>): Decoded<E> {
  const json = parseJson(message.body);
  const envelope = json.ok ? Envelope.safeParse(json.value) : undefined;
  if (envelope?.success !== true) {
    const why = json.ok ? `not an envelope: ${z.prettifyError(envelope?.error ?? new z.ZodError([]))}` : json.why;
    return { events: [], problems: [`sequence ${message.sequence} on ${message.subject}: ${why}`] };
  }
  const problems: string[] = [];
  const events: Recorded<E>[] = [];
  for (const [index, raw] of envelope.data.events.entries()) {
    if (!schema.types.has(raw.type)) continue;
    const parsed = schema.schema.safeParse(raw);
    if (parsed.success) events.push(record(message, envelope.data.incarnation, index, parsed.data));
    else problems.push(describe(message, index, raw.type, parsed.error));
  }
  return { events, problems };
}

function record<E>(message: StoredMessage, incarnation: string, index: number, event: E): Recorded<E> {
  const { sequence, subject, timeMs } = message;
  return { event, sequence, index, subject, timeMs, incarnation };
}

function describe({ sequence, subject }: StoredMessage, index: number, type: string, error: z.ZodError): string {
  return `sequence ${sequence} on ${subject}, event ${index} (${type}): ${z.prettifyError(error)}`;
}

/** A union of events, with the types that it knows at hand. */
export interface EventSchema<E> {
  readonly schema: z.ZodType<E>;
  readonly types: ReadonlySet<string>;
}

interface EventOption {
  readonly shape: { readonly type: { readonly value: string } };
}

export function eventSchema<E>(schema: z.ZodType<E> & { readonly options: readonly EventOption[] }): EventSchema<E> {
  return { schema, types: new Set(schema.options.map((option) => option.shape.type.value)) };
}
