/**
 * Remove: a participant, or a worker of it, will not come back. It is expected no more, and its log is fenced in the same batch, so
 * that it can say nothing more should it live after all. One that is started again announces itself, and takes part as before.
 */
import { logSubject } from "@holdpoint/schemas";
import { answer, asProblem, type Context, type Decision, type Planned, refuse } from "./decision.ts";
import type { OrderOf } from "./orders.ts";
import { endOf, expectedOf } from "./processes.ts";
import type { Process, Queued } from "./state.ts";

export function admitRemove(order: OrderOf<"remove">, { state }: Context, queued: Queued): Decision {
  const { role, instance, worker } = order;
  const removed = expectedOf(state, [role]).filter((process) => {
    return process.instance === instance && (worker === undefined || process.worker === worker);
  });
  if (removed.length === 0) {
    const whose = worker === undefined ? "" : `worker ${worker} of `;
    return refuse(queued, asProblem("not_found", `${whose}${role} ${instance} is not expected; status names who is`));
  }
  const { sequence: command } = queued;
  const events = removed.map((process) => ({
    type: "participant.removed" as const,
    data: { command, role, instance, worker: process.worker },
  }));
  const result = { phase: state.phase, checkpointId: state.open?.checkpointId ?? null };
  const { messages } = answer(command, order.operation, result, ...events);
  return { kind: "append", messages: [...messages, ...removed.map(fencing)] };

  function fencing(process: Process): Planned {
    const subject = logSubject(state.run, process);
    return { to: "log", subject, command, expects: { subject, sequence: endOf(state, process) } };
  }
}
