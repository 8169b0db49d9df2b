/**
 * What the trainer has said on its log, so that it says nothing twice: after a crash it may train a group again that it had
 * published, and comes to the same.
 *
 * Of a version or a group that was published more than once, after a restore to older weights, the latest counts.
 */
import { decodeEvents, type EventLog, eventSchema } from "@holdpoint/eventsourcing";
import { type Episode, filters, logEvents, type LogEventOf } from "@holdpoint/schemas";
import type { TrainerState } from "./state.ts";

export type TrainerLogEvent = LogEventOf<"trainer">;

const trainerEvents = eventSchema(logEvents.trainer);

export class Publications {
  readonly #latest = new Map<string, string>();
  readonly #saved = new Set<string>();

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
    if (event.type === "trainer.saved" && event.data.checkpointId !== null) this.#saved.add(event.data.checkpointId);
  }

  /** The checkpoints with which a state was saved, oldest first. */
  get checkpoints(): readonly string[] {
    return [...this.#saved];
  }

  /** Those of `events` that do not stand as they are. */
  missing(events: readonly TrainerLogEvent[]): readonly TrainerLogEvent[] {
    return events.filter((event) => {
      const said = saidBy(event);
      return said === undefined || this.#latest.get(said.name) !== said.what;
    });
  }
}

/**
 * What the log has to say of the weights that the trainer has: each version that they went through, and the group that led to it.
 * After a trainer went back, another history may have published the same versions since.
 *
 * @param untrained the digest of the weights of version 0
 */
export function sayingOf({ groups }: TrainerState, untrained: string): readonly TrainerLogEvent[] {
  return [
    { type: "policy.published", data: { version: 0, digest: untrained } },
    ...groups.flatMap(({ group, version, policy, cursor, episodes }): readonly TrainerLogEvent[] => [
      { type: "policy.published", data: { version, digest: policy } },
      { type: "group.trained", data: { group, version, episodes: episodes.map(named), cursor } },
    ]),
  ];
}

function named({ rollout, attempt }: Episode): Episode {
  return { rollout, attempt };
}

/** The cursor of a group is left out: it may differ where nothing else does. */
function saidBy(event: TrainerLogEvent): { readonly name: string; readonly what: string } | undefined {
  if (event.type === "policy.published") return { name: `policy ${event.data.version}`, what: event.data.digest };
  if (event.type !== "group.trained") return undefined;
  const { group, version, episodes } = event.data;
  return { name: `group ${group}`, what: JSON.stringify([version, episodes]) };
}
