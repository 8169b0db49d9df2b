import type { Decision, Planned } from "@holdpoint/checkpoint";

/**
 * What the coordinator's own log says of a decision: the types of its events, the checkpoint and the commands that it is about, and
 * how commands ended.
 */
export function noteOf({ messages }: Extract<Decision, { kind: "append" }>) {
  const outcomes = messages.flatMap((message) => (message.to === "outcome" ? [noteOfOutcome(message)] : []));
  const data = messages.flatMap((message) =>
    message.to === "control" ? message.events.map((event) => event.data) : [],
  );
  const ids = new Set([
    ...data.map((each) => ("checkpointId" in each ? each.checkpointId : null)),
    ...messages.map((message) => (message.to === "outcome" ? message.outcome.result?.checkpointId : null)),
  ]);
  const [checkpointId] = [...ids].filter((id) => typeof id === "string");
  const commands = new Set(data.flatMap((each) => ("command" in each && each.command !== null ? [each.command] : [])));
  return {
    events: [...new Set(messages.flatMap(typesOf))],
    ...(checkpointId !== undefined && { checkpointId }),
    ...(commands.size > 0 && { commands: [...commands] }),
    ...(outcomes.length > 0 && { outcomes }),
  };
}

function typesOf(message: Planned): readonly string[] {
  if (message.to === "control") return message.events.map(({ type }) => type);
  return message.to === "log" ? ["participant.fenced"] : [];
}

function noteOfOutcome({ outcome }: Extract<Planned, { to: "outcome" }>) {
  const { command, operation, ok } = outcome;
  return outcome.ok ? { command, operation, ok } : { command, operation, ok, problem: outcome.problem };
}
