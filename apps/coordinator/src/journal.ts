import type { Decision } from "@holdpoint/checkpoint";

/** What the coordinator's own log says of a decision: the types of its events, and how commands ended. */
export function noteOf({ messages }: Extract<Decision, { kind: "append" }>) {
  const events = new Set<string>();
  const outcomes: object[] = [];
  for (const message of messages) {
    if (message.to === "control") for (const { type } of message.events) events.add(type);
    if (message.to === "log") events.add("participant.fenced");
    if (message.to !== "outcome") continue;
    const { command, operation, ok } = message.outcome;
    outcomes.push(
      message.outcome.ok ? { command, operation, ok } : { command, operation, ok, problem: message.outcome.problem },
    );
  }
  return { events: [...events], ...(outcomes.length > 0 && { outcomes }) };
}
