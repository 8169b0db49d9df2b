/**
 * The model calls and tool calls that count.
 *
 * A call counts where the agent received its answer on the path of the final attempt (L6); the row of the ledger and the
 * execution are those that gave this answer (L5). What was answered beside the path is only counted.
 */
import { countsOn, type Path } from "@holdpoint/eventsourcing";
import type { RolloutHistory } from "./rollout-history.ts";

/** A row of the ledger. `request` and `response` are digests. */
export interface CallFacts {
  readonly turn: number;
  readonly request: string;
  readonly response: string;
  readonly policyVersion: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
}

/** `arguments` and `result` are digests. */
export interface ToolFacts {
  readonly turn: number;
  readonly index: number;
  readonly name: string;
  readonly arguments: string;
  readonly result: string;
  readonly execution: string;
}

export interface Committed<Call> {
  readonly calls: readonly Call[];
  /** How often a call was answered without counting. */
  readonly abandoned: number;
  /** What breaks the history, as sentences: a committed step that was repeated, an edge on which two logs disagree. */
  readonly faults: readonly string[];
}

export function committedCalls(part: RolloutHistory, path: Path): Committed<CallFacts> {
  const rows = part.model.flatMap(({ event, sequence }) =>
    event.type === "call.finished" ? [{ ...event.data, sequence }] : [],
  );
  const received = part.agent.flatMap(({ event, sequence }) =>
    event.type === "call.received" ? [{ ...event.data, sequence }] : [],
  );
  const counting = received.filter((call) => counts(path, call));
  const faults = repeatedIn(counting.map(({ turn }) => `turn ${turn}: the model's answer`));
  const calls: CallFacts[] = [];
  for (const { turn, response } of counting) {
    const gave = rows.filter((row) => row.turn === turn && row.response.digest === response.digest);
    const row = gave.findLast((one) => counts(path, one));
    if (row === undefined) faults.push(`turn ${turn}: the ledger has no row with the answer that the agent received`);
    else calls.push(callFacts(row, response.digest));
  }
  return { calls, faults, abandoned: rows.length - calls.length };
}

function callFacts(row: Omit<CallFacts, "response">, response: string): CallFacts {
  const { turn, request, policyVersion, promptTokens, completionTokens } = row;
  return { turn, request, response, policyVersion, promptTokens, completionTokens };
}

export function committedTools(part: RolloutHistory, path: Path): Committed<ToolFacts> {
  const started = part.resources.flatMap(({ event, sequence }) =>
    event.type === "tool.started" ? [{ ...event.data, sequence }] : [],
  );
  const finished = part.resources.flatMap(({ event, sequence }) =>
    event.type === "tool.finished" ? [{ ...event.data, sequence }] : [],
  );
  const returned = part.agent.flatMap(({ event, sequence }) =>
    event.type === "tool.returned" ? [{ ...event.data, sequence }] : [],
  );
  const counting = returned.filter((call) => counts(path, call));
  const executed = finished.filter((call) => counts(path, call));
  const faults = [
    ...repeatedIn(executed.map((call) => `${nameOf(call)}: the execution`)),
    ...repeatedIn(counting.map((call) => `${nameOf(call)}: the result that the agent received`)),
  ];
  const calls: ToolFacts[] = [];
  for (const call of counting) {
    const end = executed.find((one) => isSame(one, call) && one.result.digest === call.result.digest);
    const begin = started.findLast((one) => isSame(one, call) && counts(path, one));
    if (end === undefined || begin === undefined) {
      faults.push(`${nameOf(call)}: no execution gave the result that the agent received`);
      continue;
    }
    const { turn, index, execution, result } = end;
    calls.push({ turn, index, name: begin.name, arguments: begin.arguments, result: result.digest, execution });
  }
  return { calls, faults, abandoned: finished.length - calls.length };
}

/** The executions of verify that count: one, of an episode that finished. */
export function committedVerifies(part: RolloutHistory, path: Path): Committed<string> {
  const finished = part.resources.flatMap(({ event, sequence }) =>
    event.type === "verify.finished" ? [{ ...event.data, sequence }] : [],
  );
  const calls = finished.filter((verify) => counts(path, verify)).map(({ execution }) => execution);
  return { calls, faults: repeatedIn(calls.map(() => "verify")), abandoned: finished.length - calls.length };
}

function counts(path: Path, { attempt, sequence }: { readonly attempt: number; readonly sequence: number }): boolean {
  return countsOn(path, attempt, sequence);
}

interface Place {
  readonly turn: number;
  readonly index: number;
}

function isSame(one: Place, other: Place): boolean {
  return one.turn === other.turn && one.index === other.index;
}

function nameOf({ turn, index }: Place): string {
  return `turn ${turn}, call ${index}`;
}

/** A sentence for each name that stands there more than once. */
function repeatedIn(names: readonly string[]): string[] {
  const again = names.filter((name, at) => names.indexOf(name) !== at);
  return [...new Set(again)].map((name) => `${name} counts more than once`);
}
