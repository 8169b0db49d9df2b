/** Drops the ledgers of episodes that have ended: the environment says so on its result subject, and nobody asks for them again. */
import { decodeEvents, type EventLog, eventSchema, type Tail } from "@holdpoint/eventsourcing";
import { EnvironmentEvent, filters } from "@holdpoint/schemas";
import type { Model } from "./model.ts";

const environmentEvents = eventSchema(EnvironmentEvent);

/** Follows the results from where the oldest of the live ledgers was last spoken of. */
export async function followEndings(model: Model, log: EventLog, run: string): Promise<Tail> {
  const live = model.sessions.all().map(({ sequence }) => sequence);
  const from = live.length > 0 ? Math.min(...live) : await log.lastSequence();
  return log.tail({ from: Math.max(1, from), subjects: [filters.results(run)] }, (message) => {
    for (const { event } of decodeEvents(message, environmentEvents).events) {
      if (event.type === "episode.ended") close(model, event.data);
    }
  });
}

function close(model: Model, { rollout, attempt }: { readonly rollout: string; readonly attempt: number }): void {
  if (model.sessions.get({ rollout, attempt }) === undefined) return;
  model
    .record({ type: "session.closed", data: { rollout, attempt } })
    .catch((error: unknown) => model.options.trouble("a ledger was not closed", error));
}
