/** Where explorations begin, and what may be commanded and go wrong in each. */
import type { Operation } from "@holdpoint/schemas";
import { act, decision, type Member, obey, send, smallRun, type World } from "./small-run.ts";
import type { Commands } from "./small-run-space.ts";
import { obligationsOf } from "@holdpoint/checkpoint";

const r1 = { rollout: "r1", attempt: 0 };
const r2 = { rollout: "r2", attempt: 0 };

/** Three participants, of which the agent has two workers. The second of them cannot export what it holds. */
const members: readonly Member[] = [
  { role: "environment", sessions: [r1, r2] },
  { role: "model" },
  { role: "agent", sessions: [r1] },
  { role: "agent", worker: "1", sessions: [r2], restarts: [r2] },
];

const [c1, c2, c3, x1, x2] = ["c1", "c2", "c3", "x1", "x2"].map((checkpointId) => ({
  checkpointId,
  timeoutMs: 30_000,
}));

/** What may go wrong, each once. */
export const faults = [
  "dies",
  "lags",
  "expires",
  "time passes",
  "the lease ends",
  "another leads",
  "the leader is slow",
] as const;
export type Fault = (typeof faults)[number];

export interface Story {
  /** Commands that were obeyed before, each alone. */
  readonly past: readonly (readonly [Operation, object])[];
  readonly commands: Commands;
  /** How often each command may come; once where it is not named. */
  readonly repeated?: Readonly<Record<string, number>>;
}

const retired = ["retire", { rollouts: [r1, r2], timeoutMs: 30_000 }] as const;

export const stories = {
  "one checkpoint": {
    past: [],
    commands: {
      "prepare c1": ["prepare", { ...c1 }],
      "commit c1": ["commit", { ...c1 }],
      "resume c1": ["resume", { ...c1 }],
    },
  },
  "a checkpoint step by step": {
    past: [["prepare", { ...c1 }]],
    commands: {
      "capture c1": ["capture", { ...c1 }],
      "capture c1 with a restart": ["capture", { ...c1, scope: [r1, r2] }],
      "proceed c1": ["proceed", { ...c1 }],
      "commit c1": ["commit", { ...c1 }],
      "resume c1": ["resume", { ...c1 }],
    },
  },
  "two checkpoints": {
    past: [],
    commands: {
      "checkpoint c1": ["checkpoint", { ...c1 }],
      "prepare c2": ["prepare", { ...c2 }],
      "resume c1": ["resume", { ...c1 }],
      "resume c2": ["resume", { ...c2 }],
    },
    repeated: { "prepare c2": 2 },
  },
  "a restore": {
    past: [["checkpoint", { ...c1 }], retired],
    commands: {
      "restore x1": ["restore", { ...x1, source: "c1" }],
      "resume x1": ["resume", { ...x1 }],
      "retire the replacement": ["retire", { rollouts: [{ rollout: "r1", attempt: 1 }], timeoutMs: 30_000 }],
    },
    repeated: { "restore x1": 2 },
  },
  "one restore": {
    past: [["checkpoint", { ...c1 }], retired],
    commands: { "restore x1": ["restore", { ...x1, source: "c1" }], "resume x1": ["resume", { ...x1 }] },
  },
  "two restores": {
    past: [["checkpoint", { ...c1 }], retired],
    commands: {
      "restore x1": ["restore", { ...x1, source: "c1" }],
      "resume x1": ["resume", { ...x1 }],
      "restore x2": ["restore", { ...x2, source: "c1" }],
      "release, nothing kept": ["release", { ...x1, kept: [] }],
    },
  },
  "a release": {
    past: [
      ["checkpoint", { ...c1 }],
      ["checkpoint", { ...c2 }],
    ],
    commands: {
      "release, c1 kept": ["release", { ...c2, kept: ["c1"] }],
      "release, c2 kept": ["release", { ...c2, kept: ["c2"] }],
      "checkpoint c3": ["checkpoint", { ...c3 }],
      "release, c3 kept": ["release", { ...c3, kept: ["c3"] }],
    },
  },
  "a removal": {
    past: [],
    commands: {
      "prepare c1": ["prepare", { ...c1 }],
      "remove agent.1": ["remove", { role: "agent", instance: "agent1", worker: "1", timeoutMs: 30_000 }],
      "commit c1": ["commit", { ...c1 }],
      "resume c1": ["resume", { ...c1 }],
    },
    repeated: { "prepare c1": 2 },
  },
} as const satisfies Record<string, Story>;

export type StoryName = keyof typeof stories;

export function isStory(name: string): name is StoryName {
  return name in stories;
}

/** The world in which a story begins, led by `decide`; what may go wrong there: `may`. */
export function beginningOf(
  { past, commands, repeated = {} }: Story,
  may: readonly Fault[] = faults,
  decide?: World["decide"],
): World {
  const world = smallRun(members, decide);
  settle(world);
  for (const [operation, body] of past) {
    send(world, operation, body);
    settle(world);
  }
  for (const name of Object.keys(commands)) world.left[name] = repeated[name] ?? 1;
  for (const fault of may) world.left[fault] = 1;
  return world;
}

/** Everybody does what there is to do, until nothing is. */
export function settle(world: World): void {
  for (let isMoved = true; isMoved;) {
    isMoved = false;
    for (let decided = decision(world); decided.kind === "append" && act(world, decided); decided = decision(world)) {
      isMoved = true;
    }
    for (const process of world.processes) {
      if (!process.alive || obligationsOf(process.gate).length === 0) continue;
      obey(world, process);
      isMoved = true;
    }
  }
}

/** Settles, and lets time pass, in whole milliseconds, to whatever a command under way waits for, until none is. */
export function runOut(world: World): void {
  settle(world);
  while (world.state.ops.size > 0) {
    const decided = decision(world);
    if (decided.kind === "wait") world.nowMs = Math.max(world.nowMs, Math.ceil(decided.untilMs));
    settle(world);
  }
}
