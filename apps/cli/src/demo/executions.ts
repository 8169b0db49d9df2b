/**
 * What was really executed: the log outside the sandboxes, which the resources server appends to as it runs a tool.
 *
 * It is held against the history: a call that counts was executed once, by the execution that the history names, and never
 * again after that. Executions that the history does not name were repeated: begun by a process that died, or undone by a
 * restore. They are counted, and are no fault.
 */
import * as z from "zod";

const Line = z.object({
  execution: z.string(),
  rollout: z.string(),
  attempt: z.int(),
  turn: z.int().nullable(),
  index: z.int().nullable(),
  name: z.string(),
  phase: z.enum(["begin", "end"]),
});

/** Turn and index are null for a verify. */
export interface Execution {
  readonly execution: string;
  readonly rollout: string;
  readonly attempt: number;
  readonly turn: number | null;
  readonly index: number | null;
  readonly name: string;
  /** How often it is said to have begun, and to have ended. */
  readonly begun: number;
  readonly ended: number;
  /** Its place among all lines, from 0, when it began. */
  readonly position: number;
}

export interface ExecutionLog {
  readonly executions: readonly Execution[];
  /** Lines that could not be read. The last one may be torn, where its writer was killed. */
  readonly problems: readonly string[];
}

/** Reads the lines of an execution log, whose last one may be torn. */
export function readExecutions(text: string): ExecutionLog {
  const known = new Map<string, Execution>();
  const problems: string[] = [];
  const lines = text.split("\n");
  for (const [position, line] of lines.entries()) {
    if (line === "") continue;
    const parsed = parseLine(line);
    if (parsed === undefined) problems.push(`line ${position + 1} of the execution log cannot be read`);
    else known.set(parsed.execution, advance(known.get(parsed.execution), parsed, position));
  }
  return { executions: [...known.values()], problems };
}

function parseLine(line: string): z.infer<typeof Line> | undefined {
  try {
    const parsed = Line.safeParse(JSON.parse(line));
    return parsed.success ? parsed.data : undefined;
  } catch {
    return undefined;
  }
}

function advance(known: Execution | undefined, line: z.infer<typeof Line>, position: number): Execution {
  const { phase, ...named } = line;
  const before = known ?? { ...named, begun: 0, ended: 0, position };
  return phase === "begin" ? { ...before, begun: before.begun + 1 } : { ...before, ended: before.ended + 1 };
}

/** A tool call or a verify that counts, and the execution that the history names for it. */
export interface CommittedCall {
  readonly rollout: string;
  readonly turn: number | null;
  readonly index: number | null;
  readonly execution: string;
}

export interface ExecutionAudit {
  /** Calls that count and were executed as they have to be. */
  readonly once: number;
  /** Executions that no history names, by rollout. */
  readonly repeated: ReadonlyMap<string, number>;
  /** What breaks the rule, as sentences. */
  readonly faults: readonly string[];
}

/** Whether every committed call was executed once, and not again after it counted. */
export function auditExecutions(committed: readonly CommittedCall[], executions: readonly Execution[]): ExecutionAudit {
  const byId = new Map(executions.map((execution) => [execution.execution, execution]));
  const lastOf = new Map<string, Execution>();
  for (const execution of executions) {
    const before = lastOf.get(callKey(execution));
    if (before === undefined || before.position < execution.position) lastOf.set(callKey(execution), execution);
  }
  const faults = committed.flatMap((call) => faultOf(call, byId.get(call.execution), lastOf.get(callKey(call))));
  const named = new Set(committed.map(({ execution }) => execution));
  const repeated = new Map<string, number>();
  for (const { execution, rollout } of executions) {
    if (!named.has(execution)) repeated.set(rollout, (repeated.get(rollout) ?? 0) + 1);
  }
  return { once: committed.length - faults.length, repeated, faults };
}

function faultOf(call: CommittedCall, own: Execution | undefined, last: Execution | undefined): readonly string[] {
  const name =
    call.turn === null ? `${call.rollout}, verify` : `${call.rollout}, turn ${call.turn}, call ${call.index}`;
  if (own === undefined) return [`${name}: nothing was executed as ${call.execution}`];
  if (callKey(own) !== callKey(call)) return [`${name}: ${call.execution} was executed for another call`];
  if (own.begun !== 1 || own.ended !== 1) {
    return [`${name}: ${call.execution} began ${own.begun} times and ended ${own.ended} times`];
  }
  if (last !== own) return [`${name}: executed again as ${last?.execution} after it had counted`];
  return [];
}

function callKey({ rollout, turn, index }: Pick<CommittedCall, "rollout" | "turn" | "index">): string {
  return `${rollout}/${turn}/${index}`;
}
