/** Makes the record of a run out of what it left behind. */
import type { Content, Digest } from "@holdpoint/schemas";
import * as z from "zod";
import { controlFacts } from "./checkpoints.ts";
import { auditExecutions, type CommittedCall, readExecutions } from "./executions.ts";
import type { History } from "./history.ts";
import type { KillFacts, RolloutRecord, RunRecord, SavedFacts, TrainedFacts } from "./record.ts";
import { type RolloutFacts, rolloutFacts } from "./rollouts.ts";

/** What of a verdict is compared. */
const Verdict = z.object({ reward: z.number(), treeDigest: z.string() });

export interface Traces {
  readonly history: History;
  /** The text of the execution log. */
  readonly executions: string;
  /** The text of something that an event carries or names. */
  readonly read: (content: Content) => Promise<string>;
}

/** What the supervisor knows of a run, as it stands in its record. */
export type Observed = Pick<
  RunRecord,
  "name" | "startedAtMs" | "endedAtMs" | "trainer" | "missedKills" | "exits" | "problems" | "leftovers"
> & { readonly kills: readonly Omit<KillFacts, "hit">[] };

export async function recordOf(observed: Observed, { history, executions, read }: Traces): Promise<RunRecord> {
  const { checkpoints, restores } = controlFacts(history.control);
  const facts = rolloutFacts(history, restores);
  const rollouts = await Promise.all(facts.map((rollout) => withTree(rollout, read)));
  const log = readExecutions(executions);
  const audit = auditExecutions(committedExecutions(facts), log.executions);
  return {
    ...observed,
    rollouts,
    checkpoints,
    restores,
    trained: trainedIn(history),
    saved: savedIn(history),
    executions: { ...audit, total: log.executions.length },
    kills: observed.kills.map((kill) => ({ ...kill, hit: hitBy(kill, facts) })),
    problems: [...observed.problems, ...history.problems, ...log.problems],
    messages: history.messages,
    bytes: history.bytes,
  };
}

async function withTree(rollout: RolloutFacts, read: Traces["read"]): Promise<RolloutRecord> {
  if (rollout.verdict === null) return { ...rollout, treeDigest: null };
  const verdict = Verdict.safeParse(JSON.parse(await read(rollout.verdict)));
  const treeDigest: Digest | null = verdict.success ? verdict.data.treeDigest : null;
  return { ...rollout, treeDigest };
}

function committedExecutions(facts: readonly RolloutFacts[]): readonly CommittedCall[] {
  return facts.flatMap(({ rollout, tools, verifies }) => [
    ...tools.map(({ turn, index, execution }) => ({ rollout, turn, index, execution })),
    ...verifies.map((execution) => ({ rollout, turn: null, index: null, execution })),
  ]);
}

/** The rollouts whose activation was running at a kill. */
function hitBy({ atMs }: Pick<KillFacts, "atMs">, facts: readonly RolloutFacts[]): readonly string[] {
  return facts
    .filter(({ attempts }) =>
      attempts.some(({ active }) => active.some((span) => span.fromMs <= atMs && atMs < span.toMs)),
    )
    .map(({ rollout }) => rollout);
}

function trainedIn({ trainer }: History): readonly TrainedFacts[] {
  return trainer.flatMap(({ event, sequence }) => {
    if (event.type !== "group.trained") return [];
    const { group, episodes } = event.data;
    return [{ sequence, group, rollouts: episodes.map(({ rollout }) => rollout) }];
  });
}

function savedIn({ trainer }: History): readonly SavedFacts[] {
  return trainer.flatMap(({ event, sequence, timeMs }) => {
    return event.type === "trainer.saved" ? [{ sequence, checkpointId: event.data.checkpointId, atMs: timeMs }] : [];
  });
}
