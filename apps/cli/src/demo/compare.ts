/**
 * Whether the run under chaos ended as the one without, and whether there was any chaos: each check looks at both records and
 * says what is wrong in sentences.
 *
 * Equality needs a deterministic policy whose draws are seeded by rollout and turn alone, and whose version is pinned for each
 * group. Times are not compared between the runs: what is charged is held against the run's own log.
 */
import type { ProcessExit } from "../run/managed-process.ts";
import { continuityFaults } from "./continuity.ts";
import type { RolloutRecord, RunRecord } from "./record.ts";
import { type ChaosLevel, victims } from "./schedule.ts";

export interface Pair {
  readonly calm: RunRecord;
  readonly chaos: RunRecord;
  readonly level: ChaosLevel;
  /** The policy version that each planned rollout has to be sampled with. */
  readonly pinned: ReadonlyMap<string, number>;
}

export interface Check {
  readonly name: string;
  /** What has to hold. */
  readonly claim: string;
  /** What does not, as sentences; empty: it holds. */
  readonly faults: readonly string[];
}

/** How far a charge may be from what the log shows: this much, or this share of it, whichever is more. */
const budgetTolerance = { ms: 1000, share: 0.05 } as const;

type Rule = Omit<Check, "faults"> & { readonly faultsOf: (pair: Pair) => readonly string[] };

const budgetClaim = `each charge is the sum of the unparked intervals, within ${budgetTolerance.ms} ms or ${budgetTolerance.share * 100} %`;

const rules: readonly Rule[] = [
  rule("finished", "every planned rollout finished in both runs", unfinished),
  rule("tree", "the same files at the end of each rollout", eachEqual("tree hash", treeOf)),
  rule(
    "reward",
    "the same reward",
    eachEqual("reward", ({ reward }) => reward),
  ),
  rule("ledger", "the same model calls: requests, answers, tokens, policy version", eachEqual("ledger", callsOf)),
  rule("tools", "the same tool calls with the same results", eachEqual("tool calls", toolsOf)),
  rule("once", "nothing executed twice inside the committed history", inBoth(once)),
  rule("budget", budgetClaim, inBoth(budget)),
  rule("policy", "each group sampled with the version that the plan pins", policy),
  rule("weights", "the same trained weights, bit by bit", weights),
  rule("continued", "whatever was restorable was continued, not restarted", inBoth(continuityFaults)),
  rule("chaos", "every process killed, everything at once too, and a running activation was hit", kills),
  rule("exits", "no process ended by itself but the trainer that was done", inBoth(exits)),
  rule(
    "leftovers",
    "no process, sandbox or snapshot is left over",
    inBoth(({ leftovers }) => leftovers),
  ),
  rule(
    "log",
    "both runs could be read to their end",
    inBoth(({ problems }) => problems),
  ),
];

/** All checks of a pair of runs, in the order in which they are shown. */
export function compareRuns(pair: Pair): readonly Check[] {
  return rules.map(({ name, claim, faultsOf }) => ({ name, claim, faults: faultsOf(pair) }));
}

function rule(name: string, claim: string, faultsOf: Rule["faultsOf"]): Rule {
  return { name, claim, faultsOf };
}

function inBoth(faultsOf: (run: RunRecord) => readonly string[]): Rule["faultsOf"] {
  return ({ calm, chaos }) => [calm, chaos].flatMap((run) => faultsOf(run).map((fault) => `${run.name}: ${fault}`));
}

/** Whether `part` of a rollout says the same in both runs. Rollouts that one of them lacks are `unfinished`. */
function eachEqual(what: string, part: (rollout: RolloutRecord) => unknown): Rule["faultsOf"] {
  return ({ calm, chaos }) => {
    const others = new Map(chaos.rollouts.map((rollout) => [rollout.rollout, rollout]));
    return calm.rollouts.flatMap((rollout) => {
      const other = others.get(rollout.rollout);
      if (other === undefined) return [];
      const [one, two] = [part(rollout), part(other)];
      const difference = differenceOf(one, two);
      return difference === undefined ? [] : [`${rollout.rollout}: ${what} differs: ${difference}`];
    });
  };
}

/** The first place where two values differ, in words; `undefined` where they are equal. */
function differenceOf(one: unknown, other: unknown): string | undefined {
  if (Array.isArray(one) && Array.isArray(other)) {
    const at = Array.from({ length: Math.max(one.length, other.length) }, (_, index) => index);
    const first = at.find((index) => JSON.stringify(one[index]) !== JSON.stringify(other[index]));
    return first === undefined ? undefined : `entry ${first}: ${shown(one[first])} and ${shown(other[first])}`;
  }
  return Object.is(one, other) ? undefined : `${shown(one)} and ${shown(other)}`;
}

function shown(value: unknown): string {
  return value === undefined ? "nothing" : JSON.stringify(value);
}

function treeOf({ treeDigest }: RolloutRecord): string | null {
  return treeDigest;
}

function callsOf({ calls }: RolloutRecord): unknown {
  return calls;
}

/** Executions have names of their own in each run. */
function toolsOf({ tools }: RolloutRecord): unknown {
  return tools.map(({ turn, index, name, arguments: input, result }) => ({ turn, index, name, input, result }));
}

function unfinished({ calm, chaos, pinned }: Pair): readonly string[] {
  return [calm, chaos].flatMap((run) => {
    const known = new Map(run.rollouts.map((rollout) => [rollout.rollout, rollout]));
    const unplanned = [...known.keys()].filter((rollout) => !pinned.has(rollout));
    const missing = [...pinned.keys()].flatMap((rollout) => {
      const facts = known.get(rollout);
      if (facts === undefined) return [`${run.name}: ${rollout} was never opened`];
      const sound = facts.status === "finished" && facts.treeDigest !== null && facts.reward !== null;
      return sound ? [] : [`${run.name}: ${rollout} is ${facts.status}, without a full verdict`];
    });
    return [...missing, ...unplanned.map((rollout) => `${run.name}: ${rollout} was not planned`)];
  });
}

function once({ executions, rollouts }: RunRecord): readonly string[] {
  return [...rollouts.flatMap(({ faults }) => faults), ...executions.faults];
}

function budget({ rollouts }: RunRecord): readonly string[] {
  return rollouts.flatMap(({ rollout, chargedMs, workedMs }) => {
    const allowed = Math.max(budgetTolerance.ms, budgetTolerance.share * workedMs);
    if (Math.abs(chargedMs - workedMs) <= allowed) return [];
    return [`${rollout} was charged ${Math.round(chargedMs)} ms, and the log shows ${Math.round(workedMs)} ms`];
  });
}

function policy({ calm, chaos, pinned }: Pair): readonly string[] {
  return [calm, chaos].flatMap((run) =>
    run.rollouts.flatMap(({ rollout, calls, policyVersion }) => {
      const sampled = [...new Set([policyVersion, ...calls.map((call) => call.policyVersion)])];
      const wanted = pinned.get(rollout);
      if (wanted === undefined || sampled.every((version) => version === wanted)) return [];
      return [`${run.name}: ${rollout} was sampled with version ${sampled.join(", ")} instead of ${wanted}`];
    }),
  );
}

function weights({ calm, chaos }: Pair): readonly string[] {
  const [one, other] = [calm.trainer, chaos.trainer];
  if (one === null || other === null) return ["a trainer left no weights"];
  const differing = one.weights.filter((weight, at) => !Object.is(weight, other.weights[at])).length;
  const sameShape = one.weights.length === other.weights.length && one.version === other.version;
  if (differing === 0 && sameShape && one.digest === other.digest) return [];
  const versions = `version ${one.version} is ${one.digest}, version ${other.version} is ${other.digest}`;
  return [`the weights differ in ${differing} of ${one.weights.length}: ${versions}`];
}

function kills({ chaos, level }: Pair): readonly string[] {
  if (level === "none") return [];
  const faults: string[] = [];
  for (const victim of [...victims, "everything"] as const) {
    const killed = chaos.kills.some(({ planned, processes }) => planned.victim === victim && processes.length > 0);
    if (!killed) faults.push(`${victim} was never killed`);
  }
  for (const { victim, afterCalls } of chaos.missedKills) {
    faults.push(`the run was over before the kill of ${victim}, which was due after ${afterCalls} calls`);
  }
  if (!chaos.kills.some(({ hit }) => hit.length > 0)) faults.push("no kill hit a running activation");
  const total = chaos.kills.filter(({ planned }) => planned.victim === "everything").length;
  const installed = chaos.restores.filter(({ installedAtMs }) => installedAtMs !== null);
  if (installed.length < total)
    faults.push(`everything was killed ${total} times, and ${installed.length} restores were installed`);
  if (!chaos.restores.some(({ continued }) => continued.length > 0)) faults.push("no restore continued a rollout");
  return faults;
}

/** Code 3 says that a successor took over: right for a process that was killed or replaced, and for no other. */
const fenced = 3;

function exits({ exits: all }: RunRecord): readonly string[] {
  const faults = all.filter((exit) => !isExpected(exit));
  return faults.map(({ process, code, signal, lastWords }) => {
    const end = `${process} ended by itself with ${signal ?? `code ${code}`}`;
    return lastWords === "" ? end : `${end}, its last words: ${lastWords}`;
  });
}

function isExpected({ process, cause, code, killedBefore }: ProcessExit): boolean {
  if (cause === "killed") return true;
  if (cause === "stopped") return code === 0;
  if (code === fenced) return killedBefore > 0;
  return process === "trainer" && code === 0;
}
