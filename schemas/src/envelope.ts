/**
 * One message of the stream: the events that one process appended at once.
 *
 * Its writer stands in its subject, its time is the stream's timestamp, its message id is `Nats-Msg-Id`.
 */
import * as z from "zod";
import { Token } from "./ids.ts";

/** The version of the events' schema that this code writes. Older ones are read for ever. */
export const schemaVersion = 1;

/** The header that marks a message whose events concern the control plane; the coordinator skips all others unread. */
export const controlPlaneHeader = "Hp-Control";

export const Event = z.object({ type: z.string(), data: z.record(z.string(), z.unknown()) });
export type Event = z.infer<typeof Event>;

export const Envelope = z.object({
  schema: z.int().positive(),
  /** Which life of the writer's process wrote this. */
  incarnation: Token,
  events: z.array(Event),
});
export type Envelope = z.infer<typeof Envelope>;
