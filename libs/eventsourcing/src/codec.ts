/** Events to and from the bytes of a message. Reading never throws: what cannot be read is a problem with a place. */
import { controlPlaneTypes, Envelope, type Event, schemaVersion, Token } from "@holdpoint/schemas";
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

/** An event before it rests anywhere. */
export interface NewEvent {
  readonly type: string;
  readonly data: object;
}

/** The body of a message with `events`, and whether the control plane has to read it. */
export function encodeEvents(
  incarnation: string,
  events: readonly NewEvent[],
): { readonly body: string; readonly controlPlane: boolean } {
  const body = envelopeOf(
    incarnation,
    events.map((event) => JSON.stringify(event)),
  );
  return { body, controlPlane: events.some((event) => concernsControlPlane(event)) };
}

/** The body of a message whose events are written already: each text is the JSON of one or, with commas between, of several. */
export function envelopeOf(incarnation: string, eventTexts: readonly string[]): string {
  return `{"schema":${schemaVersion},"incarnation":${JSON.stringify(incarnation)},"events":[${eventTexts.join(",")}]}`;
}

/** Whether the coordinator has to read an event of this type. */
export function concernsControlPlane({ type }: NewEvent): boolean {
  return controlPlaneTypes.has(type);
}

const decoder = new TextDecoder("utf-8", { fatal: true });

/** The JSON value that `bytes` say, or a sentence about why they say none. */
export function parseJson(bytes: Uint8Array): { ok: true; value: unknown } | { ok: false; why: string } {
  let text: string;
  try {
    text = decoder.decode(bytes);
  } catch {
    return { ok: false, why: "not UTF-8" };
  }
  try {
    return { ok: true, value: JSON.parse(text) };
  } catch (error) {
    return { ok: false, why: `not JSON: ${String(error)}` };
  }
}

/** The events of `message` that `schema` knows. Types that it does not know are passed over, as readers of old code must. */
export function decodeEvents<E>(message: StoredMessage, schema: EventSchema<E>): Decoded<E> {
  const envelope = parseEnvelope(message.body);
  if (typeof envelope === "string") return { events: [], problems: [`${placeOf(message)}: ${envelope}`] };
  const problems: string[] = [];
  const events: Recorded<E>[] = [];
  for (const [index, raw] of envelope.events.entries()) {
    if (!schema.types.has(raw.type)) continue;
    const parsed = schema.schema.safeParse(raw);
    if (parsed.success) events.push(record(message, envelope.incarnation, index, parsed.data));
    else problems.push(`${placeOf(message)}, event ${index} (${raw.type}): ${z.prettifyError(parsed.error)}`);
  }
  return { events, problems };
}

/** Whether `value` is what `Envelope` says, told by hand: for a million events the schema costs as much as their JSON. */
function isEnvelope(value: unknown): value is Envelope {
  if (typeof value !== "object" || value === null) return false;
  const { schema, incarnation, events }: { [K in keyof Envelope]?: unknown } = value;
  if (typeof schema !== "number" || !Number.isSafeInteger(schema) || schema < 1) return false;
  return Token.safeParse(incarnation).success && Array.isArray(events) && events.every(isEvent);
}

function isEvent(value: unknown): value is Event {
  if (typeof value !== "object" || value === null) return false;
  const { type, data }: { type?: unknown; data?: unknown } = value;
  return typeof type === "string" && typeof data === "object" && data !== null && !Array.isArray(data);
}

/** The envelope that `body` holds, or why it holds none that this code can read. */
function parseEnvelope(body: Uint8Array): Envelope | string {
  const json = parseJson(body);
  if (!json.ok) return json.why;
  if (!isEnvelope(json.value)) {
    const { error = new z.ZodError([]) } = Envelope.safeParse(json.value);
    return `not an envelope: ${z.prettifyError(error)}`;
  }
  const { schema } = json.value;
  if (schema > schemaVersion) return `written under schema ${schema}; this version reads up to ${schemaVersion}`;
  return json.value;
}

function record<E>(message: StoredMessage, incarnation: string, index: number, event: E): Recorded<E> {
  const { sequence, subject, timeMs } = message;
  return { event, sequence, index, subject, timeMs, incarnation };
}

function placeOf({ sequence, subject }: StoredMessage): string {
  return `sequence ${sequence} on ${subject}`;
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
