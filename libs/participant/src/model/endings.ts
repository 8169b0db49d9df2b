/** Drops the ledgers of episodes that have ended: the environment says so on its result subject, and nobody asks for them again. */
import { HoldpointError } from "@holdpoint/errors";
import { decodeEvents, type EventLog, eventSchema, type Tail } from "@holdpoint/eventsourcing";
import { EnvironmentEvent, type Episode, filters } from "@holdpoint/schemas";
import type { Model } from "./model.ts";
import type { ModelCalls } from "./model-calls.ts";

const environmentEvents = eventSchema(EnvironmentEvent);

/** Follows the results from where the oldest of the live ledgers was last spoken of. */
export async function followEndings(model: Model, calls: ModelCalls, log: EventLog): Promise<Tail> {
  const live = model.sessions.all().map(({ sequence }) => sequence);
  const from = live.length > 0 ? Math.min(...live) : await log.lastSequence();
  const tailed = { from: Math.max(1, from), subjects: [filters.results(model.options.run)] };
  return log.tail(tailed, (message) => {
    for (const { event } of decodeEvents(message, environmentEvents).events) {
      if (event.type === "episode.ended") void end(model, calls, event.data);
    }
  });
}

/** What is in the making may still open a ledger: that is closed as well. */
async function end(model: Model, calls: ModelCalls, { rollout, attempt }: Episode): Promise<void> {
  const episode = { rollout, attempt };
  const made = calls.end(episode);
  try {
    await close(model, episode);
    await made;
    await close(model, episode);
  } catch (error) {
    if (!HoldpointError.is(error, "stale_attempt")) model.options.trouble("a ledger was not closed", error);
  }
}

async function close(model: Model, episode: Episode): Promise<void> {
  if (model.sessions.get(episode) === undefined) return;
  await model.record({ type: "session.closed", data: episode });
}
