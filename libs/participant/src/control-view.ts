/**
 * The control events as participants read them: without the lists that are for the coordinator and the controller. A checkpoint of
 * 10,000 sessions names each of them in several events, and every process reads all of those inside the hold.
 */
import { type EventSchema, eventSchema } from "@holdpoint/eventsourcing";
import { ControlEvent } from "@holdpoint/schemas";
import * as z from "zod";

/** Lists that no participant asks for, by the type of their event. They are empty in what is read here. */
const unread: ReadonlyMap<unknown, readonly string[]> = new Map([
  ["checkpoint.prepared", ["restarts", "continued"]],
  ["checkpoint.captured", ["scope", "holdings"]],
  ["checkpoint.committed", ["scope", "holdings"]],
  ["restore.installed", ["receipt"]],
]);

/** What has not the form of an event is left for the schema to refuse. */
function withoutLists(event: unknown): unknown {
  if (typeof event !== "object" || event === null) return event;
  const { type, data }: { readonly type?: unknown; readonly data?: unknown } = event;
  const lists = unread.get(type);
  if (lists === undefined || typeof data !== "object" || data === null) return event;
  return { type, data: { ...data, ...Object.fromEntries(lists.map((name) => [name, []])) } };
}

export const controlView: EventSchema<ControlEvent> = {
  schema: z.preprocess(withoutLists, ControlEvent),
  types: eventSchema(ControlEvent).types,
};
