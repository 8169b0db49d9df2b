/** The result of a demo in the shape in which it is shown: the verdict, a row for each rollout, and the numbers of the chaos. */
import { type Check, compareRuns, type Pair } from "../demo/compare.ts";
import type { RolloutRecord, RunRecord } from "../demo/record.ts";

export interface RolloutRow {
  readonly rollout: string;
  /** The names of the checks in which it differs. */
  readonly differs: readonly string[];
  readonly reward: number | null;
  readonly treeDigest: string | null;
  readonly calls: number;
  readonly tools: number;
  /** Attempts under chaos. */
  readonly attempts: number;
  /** Model calls and executions under chaos that were done again, or given up; none of them counts. */
  readonly repeatedCalls: number;
  readonly repeatedTools: number;
  readonly calmMs: number;
  readonly chaosMs: number;
  /** Milliseconds parked for checkpoints under chaos. */
  readonly parkedMs: number;
}

/** Middle and largest of some milliseconds; null: there are none. */
export interface Spread {
  readonly medianMs: number;
  readonly maxMs: number;
}

export interface Numbers {
  readonly kills: number;
  /** Kills that hit a running activation. */
  readonly hits: number;
  readonly checkpoints: number;
  /** From the closing of admission until work went on. */
  readonly hold: Spread | null;
  /** From the cut until the checkpoint was durable. */
  readonly lag: Spread | null;
  readonly restores: number;
  readonly continued: number;
  readonly restarted: number;
  readonly calls: number;
  readonly repeatedCalls: number;
  readonly executions: number;
  readonly repeatedTools: number;
}

export interface Summary {
  readonly equal: boolean;
  readonly seed: number;
  readonly level: Pair["level"];
  readonly checks: readonly Check[];
  readonly rows: readonly RolloutRow[];
  readonly numbers: Numbers;
  readonly calm: RunRecord;
  readonly chaos: RunRecord;
}

export function summarize(pair: Pair, seed: number): Summary {
  const { calm, chaos, level } = pair;
  const checks = compareRuns(pair);
  const equal = checks.every(({ faults }) => faults.length === 0);
  return { equal, seed, level, checks, rows: rowsOf(pair, checks), numbers: numbersOf(chaos), calm, chaos };
}

function rowsOf({ calm, chaos, pinned }: Pair, checks: readonly Check[]): readonly RolloutRow[] {
  const calmly = new Map(calm.rollouts.map((rollout) => [rollout.rollout, rollout]));
  const under = new Map(chaos.rollouts.map((rollout) => [rollout.rollout, rollout]));
  return [...pinned.keys()].map((rollout) => {
    const named = new RegExp(`\\b${rollout}\\b(?!-)`);
    const differs = checks.filter(({ faults }) => faults.some((fault) => named.test(fault))).map(({ name }) => name);
    const repeatedTools = chaos.executions.repeated.get(rollout) ?? 0;
    return { rollout, differs, repeatedTools, ...ends(calmly.get(rollout)), ...efforts(under.get(rollout)) };
  });
}

function ends(calm: RolloutRecord | undefined) {
  const { reward = null, treeDigest = null, calls = [], tools = [], chargedMs = 0 } = calm ?? {};
  return { reward, treeDigest, calls: calls.length, tools: tools.length, calmMs: chargedMs };
}

function efforts(chaos: RolloutRecord | undefined) {
  const { attempts = [], abandonedCalls = 0, chargedMs = 0 } = chaos ?? {};
  const parked = attempts.flatMap((attempt) => attempt.parked);
  const parkedMs = sum(parked.map(({ fromMs, toMs }) => toMs - fromMs));
  return { attempts: attempts.length, repeatedCalls: abandonedCalls, chaosMs: chargedMs, parkedMs };
}

function numbersOf(run: RunRecord): Numbers {
  const committed = run.checkpoints.filter(({ committedAtMs }) => committedAtMs !== null);
  const installed = run.restores.filter(({ installedAtMs }) => installedAtMs !== null);
  const later = run.rollouts.flatMap(({ attempts }) => attempts.slice(1));
  return {
    kills: run.kills.length,
    hits: run.kills.filter(({ hit }) => hit.length > 0).length,
    checkpoints: committed.length,
    hold: spreadOf(
      committed.flatMap(({ openedAtMs, letGoAtMs }) => (letGoAtMs === null ? [] : [letGoAtMs - openedAtMs])),
    ),
    lag: spreadOf(committed.map(({ capturedAtMs, committedAtMs }) => (committedAtMs ?? 0) - (capturedAtMs ?? 0))),
    restores: installed.length,
    continued: later.filter(({ from }) => from !== null).length,
    restarted: later.filter(({ from }) => from === null).length,
    calls: sum(run.rollouts.map(({ calls }) => calls.length)),
    repeatedCalls: sum(run.rollouts.map(({ abandonedCalls }) => abandonedCalls)),
    executions: run.executions.once,
    repeatedTools: sum([...run.executions.repeated.values()]),
  };
}

function spreadOf(values: readonly number[]): Spread | null {
  const sorted = values.toSorted((one, other) => one - other);
  const medianMs = sorted[Math.floor(sorted.length / 2)];
  const maxMs = sorted.at(-1);
  return medianMs === undefined || maxMs === undefined ? null : { medianMs, maxMs };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
