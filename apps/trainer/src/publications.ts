/**
 * What the trainer has said on its log, so that it says nothing twice: after a crash it may train a group again that it had
 * published, and comes to the same.
 *
 * Of a version or a group that was published more than once, after a restore to older weights, the latest counts.
 */
import { decodeEvents, type EventLog, eventSchema } from "@holdpoint/eventsourcing";
import { filters, logEvents, type LogEventOf } from "@holdpoint/schemas";
import type { TrainedGroup } from "./state.ts";

export type TrainerLogEvent = LogEventOf<"trainer">;

const trainerEvents = eventSchema(logEvents.trainer);

export class Publications {
  readonly #latest = new Map<string, string>();

  /** What trainers of the run have published up to `upTo`. */
  static async read(log: EventLog, run: string, upTo: number): Promise<Publications> {
    const publications = new Publications();
    await log.read({ upTo, subjects: [filters.logsOf(run, "trainer")] }, (message) => {
      for (const { event } of decodeEvents(message, trainerEvents).events) publications.add(event);
    });
    return publications;
  }

  add(event: TrainerLogEvent): void {
    const said = saidBy(event);
    if (said !== undefined) this.#latest.set(said.name, said.what);
  }

  /** Those of `events` that do not stand as they are. */
  missing(events: readonly TrainerLogEvent[]): readonly TrainerLogEvent[] {
    return events.filter((event) => {
      const said = saidBy(event);
      return said === undefined || this.#latest.get(said.name) !== said.what;
    });
  }
}

/** That the weights of `version` are the blob `digest`. */
export function policyPublished(version: number, digest: string): TrainerLogEvent {
  return { type: "policy.published", data: { version, digest } };
}

export function groupTrained({ group, version, cursor, episodes }: TrainedGroup): TrainerLogEvent {
  const named = episodes.map(({ rollout, attempt }) => ({ rollout, attempt }));
  return { type: "group.trained", data: { group, version, episodes: named, cursor } };
}

/** The cursor of a group is left out: it may differ where nothing else does. */
function saidBy(event: TrainerLogEvent): { readonly name: string; readonly what: string } | undefined {
  if (event.type === "policy.published") return { name: `policy ${event.data.version}`, what: event.data.digest };
  if (event.type !== "group.trained") return undefined;
  const { group, version, episodes } = event.data;
  return { name: `group ${group}`, what: JSON.stringify([version, episodes]) };
}
