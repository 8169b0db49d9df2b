/** The result of a demo for programs: `report.json`, and what `--json` prints. */
import type { RunRecord } from "../demo/record.ts";
import { needs } from "./needs.ts";
import type { Summary } from "./summary.ts";

export function jsonOf({ equal, seed, level, checks, rows, numbers, calm, chaos }: Summary): string {
  const runs = [calm, chaos].map(plain);
  return `${JSON.stringify({ equal, seed, chaos: level, checks, numbers, rollouts: rows, needs, runs }, undefined, 2)}\n`;
}

/** Maps are objects, and texts that events carry stay in the log. */
function plain(run: RunRecord): object {
  const { executions, rollouts } = run;
  return {
    ...run,
    rollouts: rollouts.map(({ verdict, ...rollout }) => ({ ...rollout, verdictDigest: verdict?.digest ?? null })),
    executions: { ...executions, repeated: Object.fromEntries(executions.repeated) },
  };
}
