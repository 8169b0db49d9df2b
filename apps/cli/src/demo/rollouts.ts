/** What became of each rollout: a fold over the run's history along the path of its final attempt (L6). */
import { pathTo } from "@holdpoint/eventsourcing";
import type { Content } from "@holdpoint/schemas";
import { type AttemptFacts, attemptFacts } from "./attempts.ts";
import { workedMs } from "./budget.ts";
import { branchesOf, type RestoreFacts } from "./checkpoints.ts";
import { type CallFacts, committedCalls, committedTools, committedVerifies, type ToolFacts } from "./committed.ts";
import type { History } from "./history.ts";
import { byRollout, type RolloutHistory } from "./rollout-history.ts";

export interface RolloutFacts {
  readonly rollout: string;
  /** Oldest first. */
  readonly attempts: readonly AttemptFacts[];
  /** The attempt whose end counts; null: none has ended. */
  readonly finalAttempt: number | null;
  readonly status: string;
  readonly reward: number | null;
  readonly verdict: Content | null;
  readonly policyVersion: number | null;
  /** What of its budget the end of the episode says is used up, and what the log shows. */
  readonly chargedMs: number;
  readonly workedMs: number;
  /** Those that count. */
  readonly calls: readonly CallFacts[];
  readonly tools: readonly ToolFacts[];
  /** Executions of verify. */
  readonly verifies: readonly string[];
  /** Answered without counting: given up with an attempt, or asked for again. */
  readonly abandonedCalls: number;
  readonly abandonedTools: number;
  /** What breaks its history, as sentences. */
  readonly faults: readonly string[];
}

/** The facts of every rollout that was ever opened, by name. */
export function rolloutFacts(history: History, restores: readonly RestoreFacts[]): readonly RolloutFacts[] {
  const lastMs = Math.max(
    0,
    ...[history.control, history.environment, history.agent].map((of) => of.at(-1)?.timeMs ?? 0),
  );
  return [...byRollout(history).entries()]
    .toSorted(([one], [other]) => one.localeCompare(other, "en", { numeric: true }))
    .map(([rollout, part]) => factsOf(rollout, part, { history, restores, lastMs }));
}

interface Context {
  readonly history: History;
  readonly restores: readonly RestoreFacts[];
  readonly lastMs: number;
}

function factsOf(rollout: string, part: RolloutHistory, context: Context): RolloutFacts {
  const { history, restores } = context;
  const attempts = attemptFacts(rollout, part, context);
  const end = endOf(part);
  const attempt = end.finalAttempt ?? attempts.at(-1)?.attempt ?? 0;
  const path = pathTo(branchesOf(restores, rollout), attempt);
  const model = committedCalls(part, path);
  const tools = committedTools(part, path);
  const verifies = committedVerifies(part, path);
  return {
    rollout,
    attempts,
    ...end,
    workedMs: workedMs(path, part, history),
    calls: model.calls,
    tools: tools.calls,
    verifies: verifies.calls,
    abandonedCalls: model.abandoned,
    abandonedTools: tools.abandoned,
    faults: [...model.faults, ...tools.faults, ...verifies.faults].map((fault) => `${rollout}, ${fault}`),
  };
}

type EndFacts = Pick<RolloutFacts, "finalAttempt" | "status" | "reward" | "verdict" | "policyVersion" | "chargedMs">;

/** What the end of the highest attempt that ended says. */
function endOf({ environment }: RolloutHistory): EndFacts {
  const ends = environment.flatMap(({ event }) => (event.type === "episode.ended" ? [event.data] : []));
  const last = ends.toSorted((one, other) => one.attempt - other.attempt).at(-1);
  if (last === undefined) {
    return { finalAttempt: null, status: "unfinished", reward: null, verdict: null, policyVersion: null, chargedMs: 0 };
  }
  const { attempt, status, reward, verdict, policyVersion, chargedMs } = last;
  return { finalAttempt: attempt, status, reward, verdict, policyVersion, chargedMs };
}
