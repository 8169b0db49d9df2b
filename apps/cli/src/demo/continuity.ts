/**
 * Whether restores continued what they could: every episode in the scope of a restored checkpoint goes on from it, unless it had
 * finished by then, so that its result was still there, or the weights that belong to the checkpoint were trained with it; and
 * nothing starts over but what no checkpoint held.
 */
import type { AttemptFacts } from "./attempts.ts";
import type { RestoreFacts } from "./checkpoints.ts";
import type { RolloutRecord, RunRecord } from "./record.ts";

export function continuityFaults(run: RunRecord): readonly string[] {
  const last = run.restores.at(-1);
  const failed = last !== undefined && last.installedAtMs === null;
  return [
    ...(failed ? [`the restore ${last.checkpointId} of ${last.source} came to nothing`] : []),
    ...installed(run).flatMap((restore) => lostBy(run, restore)),
    ...run.rollouts.flatMap((rollout) => startedOver(run, rollout)),
  ];
}

/** A restore that was cut short is of no account once another one was installed. */
function installed({ restores }: RunRecord): readonly RestoreFacts[] {
  return restores.filter(({ installedAtMs }) => installedAtMs !== null);
}

function lostBy(run: RunRecord, { source, continued, startedAtMs }: RestoreFacts): readonly string[] {
  const scope = run.checkpoints.find(({ checkpointId }) => checkpointId === source)?.scope ?? [];
  const goesOn = new Set(continued.map(({ rollout }) => rollout));
  const lost = scope.filter(
    ({ rollout }) =>
      !goesOn.has(rollout) && !hasFinished(run, rollout, startedAtMs) && !isTrained(run, rollout, source),
  );
  return lost.map(({ rollout }) => `${rollout} was restorable from ${source} and was not continued`);
}

/** Whether the attempt that counts had finished by then. */
function hasFinished({ rollouts }: RunRecord, rollout: string, byMs: number): boolean {
  const facts = rollouts.find((one) => one.rollout === rollout);
  const final = facts?.attempts.find(({ attempt }) => attempt === facts.finalAttempt);
  return final?.end === "finished" && final.endedAtMs !== null && final.endedAtMs <= byMs;
}

/** Whether the weights that were saved for a checkpoint had been trained with a rollout. */
function isTrained({ saved, trained }: RunRecord, rollout: string, checkpointId: string): boolean {
  const state = saved.find((one) => one.checkpointId === checkpointId);
  if (state === undefined) return false;
  return trained.some(({ sequence, rollouts }) => sequence < state.sequence && rollouts.includes(rollout));
}

function startedOver(run: RunRecord, { rollout, attempts }: RolloutRecord): readonly string[] {
  return attempts.slice(1).flatMap((attempt, at) => {
    const before = attempts[at];
    if (attempt.from !== null || before === undefined) return [];
    const restore = restoreBetween(run, before, attempt);
    if (restore === undefined) return [`${rollout} was restarted as attempt ${attempt.attempt} without a restore`];
    const scope = run.checkpoints.find(({ checkpointId }) => checkpointId === restore.source)?.scope ?? [];
    const wasHeld = scope.some((episode) => episode.rollout === rollout);
    return wasHeld ? [`${rollout} was held by ${restore.source}, and attempt ${attempt.attempt} started over`] : [];
  });
}

function restoreBetween(run: RunRecord, before: AttemptFacts, after: AttemptFacts): RestoreFacts | undefined {
  return installed(run).findLast(
    ({ startedAtMs }) => startedAtMs >= before.openedAtMs && startedAtMs <= after.openedAtMs,
  );
}
