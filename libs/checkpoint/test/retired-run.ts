/** What the tests of restores begin with. */
import { expectSuccess, type Simulation, startedRun } from "./simulation.ts";

export const x1 = { checkpointId: "x1", source: "c1" };
export const r1 = { rollout: "r1", attempt: 0 };
export const r2 = { rollout: "r2", attempt: 0 };

/** A run that has taken c1, and whose rollouts were retired after it. */
export async function retiredRun(): Promise<Simulation> {
  const simulation = await startedRun();
  expectSuccess(await simulation.obeyed("checkpoint", { checkpointId: "c1" }));
  expectSuccess(await simulation.obeyed("retire", { rollouts: [r1, r2] }));
  return simulation;
}

export function replacements(attempt: number) {
  return ["r1", "r2"].map((rollout) => ({ rollout, attempt }));
}
