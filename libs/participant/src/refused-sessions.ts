/** Sessions whose attempts are refused, and that are there all the same: their retirement did not come to its end. */
import type { Episode, ParticipantEvent } from "@holdpoint/schemas";
import type { SessionEvent } from "@holdpoint/session";
import type { Participant } from "./participant.ts";
import { untilAborted } from "./until-aborted.ts";

/** A hook that frees nothing by then is left to itself: the sessions stay until they are retired again, or a next start. */
const patienceMs = 10_000;

/** At a start, before anything is served: nothing of them runs in this process, so they are freed, and end here. Never throws. */
export async function endRefused<State, Own extends SessionEvent>(participant: Participant<State, Own>): Promise<void> {
  const { sessions, admission, gate, options } = participant;
  if (gate.fixed !== undefined) return; // nothing may be appended (L4), and they block nothing
  const refused = [...sessions.live()].filter((session) => admission.isRefused(session)).map(episodeOf);
  if (refused.length === 0) return;
  const signal = AbortSignal.timeout(patienceMs);
  try {
    const freed = (await untilAborted(Promise.resolve(participant.hooks.retire?.(refused, signal)), signal)) ?? [];
    const retired = refused.map((data): ParticipantEvent => ({ type: "session.retired", data }));
    await participant.obey([...freed, ...retired]);
  } catch (error) {
    options.trouble("sessions that were retired before this start were not freed", error);
  }
}

function episodeOf({ rollout, attempt }: Episode): Episode {
  return { rollout, attempt };
}
