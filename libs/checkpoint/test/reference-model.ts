/**
 * What the protocol says that becomes of commands, as plain data and a page of rules: the code of each outcome, the phase, the open
 * id and its lease, stale ids, marks, what is kept. A command begins when the coordinator takes it, and ends when everybody asked has
 * answered, or its time is over.
 */
import type { Operation, Phase } from "@holdpoint/schemas";

export interface Order {
  readonly operation: Operation;
  /** Empty where it names none, as is the payload. */
  readonly id: string;
  /** The source of a restore; the rollouts of a retire or forget; what a release keeps; the process to remove. */
  readonly payload: string;
  /** Its deadline had passed when it arrived. */
  readonly isLate: boolean;
}

export interface UnderWay {
  readonly order: Order;
  code: string | undefined;
}

interface Opened {
  readonly id: string;
  readonly kind: string;
  leaseUntilMs: number;
  /** What has succeeded, with its payload. */
  readonly done: Map<Operation, string>;
  /** The attempts that a restore has taken. */
  readonly to: Map<string, number>;
}

export interface Model {
  phase: Phase;
  open: Opened | undefined;
  lastResumed: string | undefined;
  readonly stale: Set<string>;
  readonly marks: Map<string, number>;
  readonly highest: Map<string, number>;
  readonly live: Set<string>;
  /** By id: its rollouts, and the participants that held sessions of it; whichever worker of theirs is there restores them. */
  readonly kept: Map<string, { rollouts: readonly string[]; holders: readonly string[] }>;
  /** Those who are expected, `role.worker`, and how they are. */
  readonly expected: Map<string, "well" | "silent" | "broken">;
  underWay: UnderWay[];
}

/** A command has this long, and a lease so much longer, in milliseconds. */
export const timeoutMs = 30_000;
export const graceMs = 600_000;

type Rule<T> = (model: Model, payload: string, id: string) => T;
type Rules<T> = Partial<Record<Operation, T>>;

export const onOpen: readonly Operation[] = [
  "prepare",
  "renew",
  "capture",
  "proceed",
  "commit",
  "checkpoint",
  "restore",
];
export const phases: Rules<readonly Phase[]> = {
  prepare: ["idle", "preparing"],
  renew: ["preparing", "prepared", "captured", "committed", "restored"],
  capture: ["prepared"],
  proceed: ["captured", "committed"],
  commit: ["prepared", "captured"],
  checkpoint: ["idle"],
  restore: ["idle"],
  retire: ["idle", "restored"],
  forget: ["idle", "restored"],
  remove: ["idle", "preparing"],
  release: ["idle"],
};
/** Obeyed however late. */
export const timeless: readonly Operation[] = ["resume", "retire", "status"];

const takers: readonly Operation[] = ["prepare", "checkpoint", "restore", "retire", "forget"];
const steps: readonly Operation[] = ["capture", "commit", "checkpoint"];
/** What has to end first. */
export const busy: Rules<readonly Operation[]> = {
  prepare: takers,
  checkpoint: takers,
  restore: takers,
  remove: takers,
  forget: ["retire", "forget"],
  capture: steps,
  commit: steps,
  proceed: ["proceed", "checkpoint"],
};

/** Why it is refused, whenever it is allowed. */
export const doubts: Rules<Rule<string | undefined>> = {
  prepare: (model) => (isThere(model, "model") ? undefined : "invalid_phase"),
  checkpoint: (model) => (isThere(model, "model") ? undefined : "invalid_phase"),
  restore: (model, payload) => {
    const source = model.kept.get(payload);
    if (source === undefined) return "not_found";
    if (source.rollouts.some((rollout) => model.live.has(rollout))) return "invalid_phase";
    return source.holders.every((role) => isThere(model, role)) ? undefined : "invalid_checkpoint_state";
  },
  forget: ({ live, kept }, payload) =>
    live.has(payload) || [...kept.values()].some(({ rollouts }) => rollouts.includes(payload))
      ? "invalid_phase"
      : undefined,
  release: ({ lastResumed, kept }, payload, id) => {
    if (lastResumed !== id) return "stale_checkpoint";
    return listed(payload).every((each) => kept.has(each)) ? undefined : "not_found";
  },
  remove: ({ expected }, payload) => (expected.has(payload) ? undefined : "not_found"),
};

/** What stands from the acceptance on. */
export const beginnings: Rules<Rule<void>> = {
  prepare: (model, _, id) => opened(model, "checkpoint", id),
  checkpoint: (model, _, id) => opened(model, "checkpoint", id),
  restore: (model, payload, id) => {
    opened(model, "restore", id);
    for (const rollout of model.kept.get(payload)?.rollouts ?? []) {
      const to = Math.max(model.highest.get(rollout) ?? -1, model.marks.get(rollout) ?? -1) + 1;
      model.highest.set(rollout, to);
      model.open?.to.set(rollout, to);
    }
  },
  resume: (model, _, id) => resumed(model, id),
  retire: (model, payload) => {
    for (const rollout of listed(payload)) mark(model, rollout, model.highest.get(rollout) ?? 0);
  },
  release: ({ kept }, payload) => {
    for (const each of kept.keys()) if (!listed(payload).includes(each)) kept.delete(each);
  },
  remove: ({ expected }, payload) => void expected.delete(payload),
};

/** What stands once it has succeeded. */
export const ends: Rules<Rule<void>> = {
  prepare: (model) => void (model.phase = "prepared"),
  capture: (model) => void (model.phase = "captured"),
  commit: (model) => void (model.phase = "committed"),
  checkpoint: (model, _, id) => resumed(model, id),
  restore: (model) => {
    model.phase = "restored";
    for (const rollout of model.open?.to.keys() ?? []) model.live.add(rollout);
  },
  forget: ({ marks, highest }, payload) => {
    for (const book of [marks, highest]) book.delete(payload);
  },
};

/** What cleans up after itself when it has failed. */
export const failures: Rules<Rule<void>> = {
  checkpoint: (model, _, id) => resumed(model, id),
  restore: (model, _, id) => resumed(model, id),
};

/** Whether a process of this role is expected. */
function isThere({ expected }: Model, role: string): boolean {
  return [...expected.keys()].some((name) => name.startsWith(`${role}.`));
}

export function listed(payload: string): string[] {
  return payload.split(" ").filter((each) => each !== "");
}

function opened(model: Model, kind: Opened["kind"], id: string): void {
  model.open ??= { id, kind, leaseUntilMs: 0, done: new Map(), to: new Map() };
  model.phase = "preparing";
}

function mark({ marks, live }: Model, rollout: string, attempt: number): void {
  marks.set(rollout, Math.max(attempt, marks.get(rollout) ?? -1));
  live.delete(rollout);
}

/** The id is over: what was under way for it comes to nothing, and the attempts of a restore that is not done are burnt. */
export function resumed(model: Model, id: string): void {
  if (!model.stale.has(id)) model.lastResumed = id;
  model.stale.add(id);
  if (model.open?.id !== id) return;
  const aborted = model.underWay.filter(({ order }) => order.id === id && order.operation !== "resume");
  for (const each of aborted) each.code ??= "stale_checkpoint";
  if (model.phase === "preparing") for (const [rollout, to] of model.open.to) mark(model, rollout, to);
  model.open = undefined;
  model.phase = "idle";
}
