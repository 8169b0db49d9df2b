/** The crash matrix of a participant's processes: each is killed before and after every one of its appends, and started again. */
import { expect, test } from "vitest";
import { type Ended, played, scenarioRun } from "./crash-scenario.ts";

type Comparable = Omit<Ended, "story">;

/** That it joined again, and was asked to capture again, is a story of its own. */
function comparable({ story: _story, ...rest }: Ended): Comparable {
  return rest;
}

/** The processes of the scenario: environment, model, agent, resources, the agent's second worker, the one to be removed. */
const processes = [0, 1, 2, 3, 4, 5];

async function undisturbed() {
  const simulation = await scenarioRun();
  for (const process of simulation.processes) process.appends = 0;
  const expected = comparable(await played(simulation));
  /** The last append of the one that was removed was refused: started again after that it would take part again, as it may. */
  return { expected, appends: simulation.processes.map(({ appends, fenced }) => (fenced ? appends - 1 : appends)) };
}

async function killedAt(who: number, moment: "before" | "after", at: number): Promise<Comparable> {
  const simulation = await scenarioRun();
  simulation.revives = true;
  const process = simulation.processes[who];
  if (process === undefined) throw new Error(`no process ${who}`);
  process.appends = 0;
  process.killedAt = (when, append) => when === moment && append === at;
  return comparable(await played(simulation));
}

test("[L9] a process that is killed at any of its appends, and started again, changes nothing of how everything ends", async () => {
  const { expected, appends } = await undisturbed();
  let points = 0;
  for (const who of processes) {
    const count = appends[who] ?? 0;
    expect(count).toBeGreaterThan(10);
    for (let at = 1; at <= count; at++) {
      for (const moment of ["before", "after"] as const) {
        const what = `process ${who}, killed ${moment} append ${at}`;
        expect({ what, ...(await killedAt(who, moment, at)) }).toEqual({ what, ...expected });
        points += 1;
      }
    }
  }
  process.stdout.write(`crash matrix of processes: ${points} points\n`);
});
