/** Asking a leader over the broker whether it lives, and answering. */
import { HoldpointError } from "@holdpoint/errors";
import type { Connection, Subscription } from "@holdpoint/jetstream";
import { leadSubject } from "@holdpoint/schemas";
import type { Sign } from "./leader-watch.ts";

/** How a leader shows that it lives. */
export interface LeaderSigns {
  /** Asks once. @throws HoldpointError `unauthorized` where the broker does not allow it */
  ask(incarnation: string): Promise<Sign>;
  /** Answers until it is stopped. @returns once the broker knows of it */
  answer(incarnation: string): Promise<Subscription>;
}

/** What an answer may take; a leader that is busy folding is silent meanwhile. */
const timeoutMs = 500;

export function natsSigns(connection: Connection, run: string): LeaderSigns {
  return {
    answer: (incarnation) => connection.subscribe(leadSubject(run, incarnation), (message) => message.respond("")),
    async ask(incarnation) {
      if (!connection.isConnected) return "unknown";
      try {
        await connection.request(leadSubject(run, incarnation), "", { timeoutMs });
        return "alive";
      } catch (error) {
        if (!HoldpointError.is(error, "unavailable")) throw error;
        if (error.details["nobody"] === true) return "absent";
        return error.details["nobody"] === false && connection.isConnected ? "silent" : "unknown";
      }
    },
  };
}
