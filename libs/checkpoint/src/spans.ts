/** Spans of the control plane, by what they are about. */
import type { Writer } from "@holdpoint/schemas";
import type { SpanRecord } from "./observation.ts";
import { idOf } from "./orders.ts";
import { processKey } from "./processes.ts";
import type { AskRecord, CoordinatorState, Op, Open } from "./state.ts";

/** The key of a checkpoint's first span: all others of its trace are under it. */
const root = "root";

/** The whole of a checkpoint or restore. */
export function rootOf({ checkpointId, kind, openedAtMs, ...open }: Open, endMs: number): SpanRecord {
  const { prepared, captured, restorableAtMs, restore } = open;
  return {
    self: { trace: checkpointId, key: root },
    name: kind,
    parent: undefined,
    links: restore === undefined ? [] : [{ trace: restore.source, key: root }],
    startMs: openedAtMs,
    endMs,
    attributes: {
      "holdpoint.checkpoint_id": checkpointId,
      "holdpoint.captured": captured !== undefined,
      "holdpoint.restorable": restorableAtMs !== undefined,
      ...(prepared !== undefined && { "holdpoint.restarts": prepared.restarts.length }),
    },
    error: undefined,
  };
}

/** How a command ended, and when. */
export interface End {
  readonly timeMs: number;
  readonly code: string;
}

export type About = Pick<Op, "command" | "order" | "atMs" | "sender" | "joins">;

/** The command's own span and, in the trace of whoever sent it, another one that leads there and back. */
export function operationSpans(state: CoordinatorState, about: About, { timeMs: endMs, code }: End): SpanRecord[] {
  const { command, order, atMs: startMs, sender, joins } = about;
  const self = selfOf(about);
  const checkpointId = idOf(order);
  const known = checkpointId !== null && (state.open?.checkpointId === checkpointId || state.stale.has(checkpointId));
  const senders = sender === undefined ? [] : [sender];
  const shared = {
    startMs,
    endMs,
    attributes: {
      "holdpoint.command": command,
      "holdpoint.outcome": code,
      ...(checkpointId !== null && { "holdpoint.checkpoint_id": checkpointId }),
      ...(joins !== undefined && { "holdpoint.joins": joins }),
    },
    error: code === "ok" ? undefined : code,
  };
  const parent = known ? { trace: self.trace, key: root } : undefined;
  const own: SpanRecord = { self, name: `operation ${order.operation}`, parent, links: senders, ...shared };
  const theirs = senders.map((by): SpanRecord => {
    const key = `sent ${command}`;
    return {
      self: { trace: self.trace, key },
      name: `command ${order.operation}`,
      parent: by,
      links: [self],
      ...shared,
    };
  });
  return [own, ...theirs];
}

/** A command that is about no checkpoint has a trace of its own. No id of a checkpoint holds a space. */
function selfOf({ command, order }: Pick<Op, "command" | "order">): SpanRecord["self"] {
  const key = `command ${command}`;
  return { trace: idOf(order) ?? key, key };
}

/** One process' part in a command: from the ask to its answer. */
export function askSpan(
  op: Op,
  ask: AskRecord,
  process: Writer & { incarnation: string },
  { timeMs, code }: End,
): SpanRecord {
  const parent = selfOf(op);
  const checkpointId = idOf(op.order);
  return {
    self: { trace: parent.trace, key: `ask ${ask.sequence} ${processKey(process)}` },
    name: `ask ${ask.operation}`,
    parent,
    links: [],
    startMs: ask.askedAtMs,
    endMs: timeMs,
    attributes: {
      "holdpoint.asked": ask.sequence,
      "holdpoint.command": op.command,
      "holdpoint.role": process.role,
      "holdpoint.instance": process.instance,
      "holdpoint.worker": process.worker,
      "holdpoint.incarnation": process.incarnation,
      "holdpoint.outcome": code,
      ...(checkpointId !== null && { "holdpoint.checkpoint_id": checkpointId }),
    },
    error: code === "ok" ? undefined : code,
  };
}
