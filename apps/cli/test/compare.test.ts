import { expect, test } from "vitest";
import { compareRuns, type Pair } from "../src/demo/compare.ts";
import type { RolloutRecord, RunRecord } from "../src/demo/record.ts";
import { calm, chaos, continued, first, pair, rollout } from "./records.ts";

/** The faults by the name of their check; checks that hold are left out. */
function faultsOf(changed: Partial<Pair>): Record<string, readonly string[]> {
  const checks = compareRuns({ ...pair, ...changed });
  return Object.fromEntries(checks.filter(({ faults }) => faults.length > 0).map(({ name, faults }) => [name, faults]));
}

function withChaos(changed: Partial<RunRecord>): Record<string, readonly string[]> {
  return faultsOf({ chaos: { ...chaos, ...changed } });
}

function withRollout(changed: Partial<RolloutRecord>): Record<string, readonly string[]> {
  return withChaos({ rollouts: [{ ...continued, ...changed }] });
}

test("two runs that ended the same have no faults", () => {
  expect(faultsOf({})).toEqual({});
});

test("a rollout that did not finish is named", () => {
  expect(withRollout({ status: "failed" })).toEqual({
    finished: ["chaos: g0-r0 is failed, without a full verdict"],
  });
  expect(withChaos({ rollouts: [] })["finished"]).toEqual(["chaos: g0-r0 was never opened"]);
});

test("a rollout that nobody planned is named", () => {
  const strange = { ...rollout, rollout: "g9-r9" };

  expect(withChaos({ rollouts: [continued, strange] })).toEqual({ finished: ["chaos: g9-r9 was not planned"] });
});

test("another tree, another reward are named with both values", () => {
  expect(withRollout({ treeDigest: "other" })).toEqual({ tree: ['g0-r0: tree hash differs: "tree" and "other"'] });
  expect(withRollout({ reward: 1 })).toEqual({ reward: ["g0-r0: reward differs: 0.5 and 1"] });
});

test("a ledger with another row, or one row more, is named with the row", () => {
  const [row] = rollout.calls;
  if (row === undefined) throw new Error("no row");

  expect(withRollout({ calls: [{ ...row, response: "b" }] })["ledger"]?.[0]).toContain("ledger differs: entry 0");
  expect(withRollout({ calls: [row, { ...row, turn: 1 }] })["ledger"]?.[0]).toContain("entry 1: nothing and");
});

test("a tool call with another result is named, and the name of its execution does not matter", () => {
  const [tool] = rollout.tools;
  if (tool === undefined) throw new Error("no tool call");

  expect(withRollout({ tools: [{ ...tool, result: "other" }] })["tools"]?.[0]).toContain("tool calls differs: entry 0");
  expect(withRollout({ tools: [{ ...tool, execution: "z1" }] })).toEqual({});
});

test("an execution that counts twice fails", () => {
  expect(withChaos({ executions: { ...chaos.executions, faults: ["executed again"] } })).toEqual({
    once: ["chaos: executed again"],
  });
  expect(withRollout({ faults: ["turn 0 counts more than once"] })).toEqual({
    once: ["chaos: turn 0 counts more than once"],
  });
});

test("a charge that the log does not show fails, in either run", () => {
  expect(withRollout({ chargedMs: 7000 })).toEqual({
    budget: ["chaos: g0-r0 was charged 7000 ms, and the log shows 8100 ms"],
  });
  const overcharged = { ...calm, rollouts: [{ ...rollout, chargedMs: 9500 }] };
  expect(faultsOf({ calm: overcharged })["budget"]).toHaveLength(1);
});

test("a rollout that was sampled with another version than the plan's fails", () => {
  expect(withRollout({ policyVersion: 1 })).toEqual({
    policy: ["chaos: g0-r0 was sampled with version 1, 0 instead of 0"],
  });
});

test("weights that differ in one bit fail", () => {
  const weights = [0.25, -0.5 + Number.EPSILON / 2];

  expect(withChaos({ trainer: { version: 1, weights, digest: "w" } })["weights"]?.[0]).toContain("differ in 1 of 2");
  expect(withChaos({ trainer: { version: 1, weights: [0.25, -0.5], digest: "v" } })["weights"]).toHaveLength(1);
  expect(withChaos({ trainer: null })["weights"]).toEqual(["a trainer left no weights"]);
});

test("a rollout in the scope of a restored checkpoint that starts over fails", () => {
  const [restored] = chaos.restores;
  if (restored === undefined) throw new Error("no restore");
  const startedOver = {
    ...continued,
    attempts: continued.attempts.map((attempt) => ({ ...attempt, from: null })),
  };

  expect(withChaos({ restores: [{ ...restored, continued: [] }], rollouts: [startedOver] })["continued"]).toEqual([
    "chaos: g0-r0 was restorable from c1 and was not continued",
    "chaos: g0-r0 was held by c1, and attempt 1 started over",
  ]);
});

test("a rollout that had finished before the restore is not expected to continue", () => {
  const [restored] = chaos.restores;
  if (restored === undefined) throw new Error("no restore");
  const finished = { ...continued, finalAttempt: 0, attempts: [{ ...first, endedAtMs: 5400 }] };
  const late = { ...finished, attempts: [{ ...first, endedAtMs: 5600 }] };
  const restores = [{ ...restored, continued: [] }];

  expect(withChaos({ restores, rollouts: [finished] })["continued"]).toBeUndefined();
  expect(withChaos({ restores, rollouts: [late] })["continued"]).toHaveLength(1);
});

test("a rollout that the checkpoint's weights were trained with is not expected to continue", () => {
  const [restored] = chaos.restores;
  if (restored === undefined) throw new Error("no restore");
  const settled = { ...continued, attempts: [first] };
  const trainedBefore = {
    rollouts: [settled],
    trained: [{ sequence: 30, group: "g0", rollouts: ["g0-r0"] }],
    saved: [{ sequence: 50, checkpointId: "c1", atMs: 4300 }],
    restores: [{ ...restored, continued: [] }],
  };

  expect(withChaos(trainedBefore)["continued"]).toBeUndefined();
  expect(withChaos({ ...trainedBefore, saved: [] })["continued"]).toHaveLength(1);
});

test("a rollout that starts over without any restore fails", () => {
  const again = { ...first, attempt: 1, openedAtMs: 5000 };
  const calmAgain = { ...calm, rollouts: [{ ...rollout, attempts: [first, again] }] };

  expect(faultsOf({ calm: calmAgain })["continued"]).toEqual([
    "calm: g0-r0 was restarted as attempt 1 without a restore",
  ]);
});

test("a rollout that no checkpoint held may start over", () => {
  const [committed] = chaos.checkpoints;
  if (committed === undefined) throw new Error("no checkpoint");
  const startedOver = {
    ...continued,
    attempts: continued.attempts.map((attempt) => ({ ...attempt, from: null })),
  };
  const faults = withChaos({ checkpoints: [{ ...committed, scope: [] }], rollouts: [startedOver] });

  expect(faults["continued"]).toBeUndefined();
});

test("a last restore that came to nothing fails", () => {
  const [restored] = chaos.restores;
  if (restored === undefined) throw new Error("no restore");
  const failed = { ...restored, checkpointId: "r2", installedAtMs: null, installedSequence: null };

  expect(withChaos({ restores: [restored, failed] })["continued"]).toEqual([
    "chaos: the restore r2 of c1 came to nothing",
  ]);
});

test("chaos that spared a process, or missed every activation, fails", () => {
  const spared = chaos.kills.filter(({ planned }) => planned.victim !== "model");
  const missed = chaos.kills.map((kill) => ({ ...kill, hit: [] }));
  const [late] = chaos.kills;

  expect(withChaos({ kills: spared })).toEqual({ chaos: ["model was never killed"] });
  const down = chaos.kills.map((kill) => (kill.planned.victim === "model" ? { ...kill, processes: [] } : kill));
  expect(withChaos({ kills: down })).toEqual({ chaos: ["model was never killed"] });
  expect(withChaos({ kills: missed })).toEqual({ chaos: ["no kill hit a running activation"] });
  expect(withChaos({ missedKills: late === undefined ? [] : [late.planned] })["chaos"]).toHaveLength(1);
});

test("chaos after which nothing was restored fails", () => {
  expect(withChaos({ restores: [] })["chaos"]).toEqual([
    "everything was killed 1 times, and 0 restores were installed",
    "no restore continued a rollout",
  ]);
});

test("where no chaos was asked for, none is missed", () => {
  expect(faultsOf({ level: "none", chaos: { ...calm, name: "chaos" } })).toEqual({});
});

test("a process that ends by itself fails, unless it was replaced, or is the trainer that is done", () => {
  const [end] = calm.exits;
  if (end === undefined) throw new Error("no exit");
  const crashed = { ...end, process: "model", code: 1 };

  expect(withChaos({ exits: [crashed] })).toEqual({ exits: ["chaos: model ended by itself with code 1"] });
  expect(withChaos({ exits: [{ ...crashed, lastWords: "why" }] })).toEqual({
    exits: ["chaos: model ended by itself with code 1, its last words: why"],
  });
  expect(withChaos({ exits: [{ ...crashed, code: 3 }] })["exits"]).toHaveLength(1);
  expect(withChaos({ exits: [{ ...crashed, code: 3, killedBefore: 1 }] })).toEqual({});
  expect(withChaos({ exits: [{ ...end, process: "agent", cause: "stopped", code: 1 }] })["exits"]).toHaveLength(1);
});

test("anything that is left over, or cannot be read, fails", () => {
  expect(withChaos({ leftovers: ["process 7 is still there"] })).toEqual({
    leftovers: ["chaos: process 7 is still there"],
  });
  expect(withChaos({ problems: ["sequence 3 is no envelope"] })).toEqual({ log: ["chaos: sequence 3 is no envelope"] });
});
