/** Two records that are equal in everything that has to be, for tests that change one thing. */
import type { AttemptFacts } from "../src/demo/attempts.ts";
import type { Pair } from "../src/demo/compare.ts";
import type { KillFacts, RolloutRecord, RunRecord } from "../src/demo/record.ts";
import { victims } from "../src/demo/schedule.ts";

export const first: AttemptFacts = {
  attempt: 0,
  openedAtMs: 1000,
  endedAtMs: 9000,
  end: "finished",
  from: null,
  active: [{ fromMs: 1500, toMs: 8500 }],
  parked: [{ fromMs: 4000, toMs: 4200 }],
};

export const rollout: RolloutRecord = {
  rollout: "g0-r0",
  attempts: [first],
  finalAttempt: 0,
  status: "finished",
  reward: 0.5,
  verdict: null,
  treeDigest: "tree",
  policyVersion: 0,
  chargedMs: 8000,
  workedMs: 8100,
  calls: [{ turn: 0, request: "q", response: "a", policyVersion: 0, promptTokens: 10, completionTokens: 5 }],
  tools: [{ turn: 0, index: 0, name: "run_tests", arguments: "{}", result: "ok", execution: "x1" }],
  verifies: ["v1"],
  abandonedCalls: 0,
  abandonedTools: 0,
  faults: [],
};

/** The same rollout, killed with everything at 5,000 and continued from `c1`. */
export const continued: RolloutRecord = {
  ...rollout,
  finalAttempt: 1,
  tools: [{ turn: 0, index: 0, name: "run_tests", arguments: "{}", result: "ok", execution: "y1" }],
  abandonedCalls: 1,
  attempts: [
    { ...first, endedAtMs: 5000, end: "abandoned", active: [{ fromMs: 1500, toMs: 5000 }] },
    {
      ...first,
      attempt: 1,
      openedAtMs: 6000,
      from: { attempt: 0, source: "c1" },
      active: [{ fromMs: 6200, toMs: 8500 }],
      parked: [],
    },
  ],
};

const kills: readonly KillFacts[] = [...victims, "everything" as const].map((victim, at) => ({
  planned: { victim, afterCalls: at + 1, delayMs: 0, downMs: 0 },
  atMs: 2000 + at * 400,
  calls: at + 1,
  processes: [{ name: victim === "everything" ? "agent" : victim, pid: 100 + at }],
  backAtMs: 2200 + at * 400,
  hit: ["g0-r0"],
}));

export const calm: RunRecord = {
  name: "calm",
  startedAtMs: 500,
  endedAtMs: 9500,
  rollouts: [rollout],
  checkpoints: [],
  restores: [],
  trained: [{ sequence: 90, group: "g0", rollouts: ["g0-r0"] }],
  saved: [],
  executions: { once: 1, repeated: new Map(), faults: [], total: 1 },
  trainer: { version: 1, weights: [0.25, -0.5], digest: "w" },
  kills: [],
  missedKills: [],
  exits: [
    { process: "trainer", pid: 9, atMs: 9400, code: 0, signal: null, cause: "own", killedBefore: 0, lastWords: "" },
    { process: "agent", pid: 8, atMs: 9600, code: 0, signal: null, cause: "stopped", killedBefore: 0, lastWords: "" },
  ],
  problems: [],
  leftovers: [],
  messages: 100,
  bytes: 50_000,
};

export const chaos: RunRecord = {
  ...calm,
  name: "chaos",
  rollouts: [continued],
  checkpoints: [
    {
      checkpointId: "c1",
      openedAtMs: 4000,
      cut: 40,
      capturedAtMs: 4100,
      letGoAtMs: 4150,
      committedAtMs: 4200,
      scope: [{ rollout: "g0-r0", attempt: 0 }],
      restarts: [],
    },
  ],
  restores: [
    {
      checkpointId: "r1",
      source: "c1",
      cut: 40,
      startedAtMs: 5500,
      installedAtMs: 5800,
      installedSequence: 60,
      continued: [{ rollout: "g0-r0", attempt: 1, from: 0 }],
      restarted: [],
      leftOut: [],
    },
  ],
  executions: { once: 1, repeated: new Map([["g0-r0", 2]]), faults: [], total: 3 },
  kills,
  exits: [
    {
      process: "agent",
      pid: 102,
      atMs: 2801,
      code: null,
      signal: "SIGKILL",
      cause: "killed",
      killedBefore: 0,
      lastWords: "",
    },
    ...calm.exits,
  ],
};

export const pair: Pair = { calm, chaos, level: "some", pinned: new Map([["g0-r0", 0]]) };
