/** Whatever is commanded, in whatever order, whoever is killed: what the log may never show. */
import { advance, initialState } from "@holdpoint/checkpoint";
import { type Assignment, type ControlEvent, type Holding, logSubject } from "@holdpoint/schemas";
import { assert, asyncProperty, constantFrom, array, nat, oneof, record, type Arbitrary } from "fast-check";
import { describe, expect, test } from "vitest";
import { run, type Simulation, startedRun } from "./simulation.ts";

type Step =
  | { readonly do: "command"; readonly operation: string; readonly id: string }
  | { readonly do: "kill" | "silence" | "break" | "restart" | "expire"; readonly who: number }
  | { readonly do: "takeOver" }
  | { readonly do: "time"; readonly ms: number }
  | { readonly do: "settle" };

const ids = constantFrom("a", "b", "c", "d", "e", "f");
const steps = ["prepare", "renew", "capture", "proceed", "commit", "checkpoint", "resume"] as const;
const others = ["restore", "retire", "release", "forget", "status"] as const;
const operations = constantFrom(...steps, ...others);

const step: Arbitrary<Step> = oneof(
  { weight: 8, arbitrary: record({ do: constantFrom("command" as const), operation: operations, id: ids }) },
  {
    weight: 2,
    arbitrary: record({
      do: constantFrom("kill", "silence", "break", "expire", "restart", "restart", "restart"),
      who: nat(3),
    }),
  },
  { weight: 1, arbitrary: record({ do: constantFrom("takeOver" as const) }) },
  { weight: 1, arbitrary: record({ do: constantFrom("time" as const), ms: oneof(nat(40_000), nat(1_000_000)) }) },
  { weight: 5, arbitrary: record({ do: constantFrom("settle" as const) }) },
);

function bodyOf({ state }: Simulation, operation: string, id: string): object {
  const live = ["r1", "r2"].map((rollout) => ({ rollout, attempt: state.rollouts.get(rollout)?.highest ?? 0 }));
  const source = [...state.restorable.keys()].at(-1) ?? id;
  const bodies: Record<string, object> = {
    restore: { checkpointId: `x${state.sequence}`, source },
    retire: { rollouts: live },
    release: { checkpointId: state.lastResumed ?? id, kept: [] },
    forget: { rollouts: ["r1"] },
  };
  return { timeoutMs: 20_000, ...(bodies[operation] ?? { checkpointId: id }) };
}

async function take(simulation: Simulation, taken: Step): Promise<number | undefined> {
  switch (taken.do) {
    case "command": {
      if (taken.operation === "restore") {
        await simulation.command("retire", bodyOf(simulation, "retire", taken.id));
        await simulation.settle();
      }
      const body = taken.operation === "status" ? {} : bodyOf(simulation, taken.operation, taken.id);
      return simulation.command(taken.operation, body);
    }
    case "takeOver":
      await simulation.takeOver();
      break;
    case "time":
      simulation.nowMs += taken.ms;
      break;
    case "settle":
      await simulation.settle();
      break;
    default:
      await disturb(simulation, taken.do, taken.who);
  }
  return undefined;
}

const asked = ["prepare", "capture", "proceed", "commit", "resume", "restore", "retire", "forget", "release"] as const;

function refusal() {
  return { problem: { code: "unavailable" as const, message: "broken" } };
}

async function disturb(
  simulation: Simulation,
  how: "kill" | "silence" | "break" | "restart" | "expire",
  who: number,
): Promise<void> {
  const process = simulation.processes[who];
  if (process === undefined) return;
  const behave = how === "break" ? refusal : () => undefined;
  if (how === "expire") await process.expire();
  else if (how === "kill") process.kill();
  else if (how === "restart") {
    process.behaviour = {};
    await process.start();
  } else process.behaviour = Object.fromEntries(asked.map((operation) => [operation, behave]));
}

/** Everybody is well again, and whatever is open is resumed. */
async function heal(simulation: Simulation): Promise<void> {
  for (const process of simulation.processes) {
    process.behaviour = {};
    await process.start();
  }
  await simulation.runOut();
  const open = simulation.state.open?.checkpointId;
  if (open !== undefined) await simulation.obeyed("resume", { checkpointId: open });
}

describe("whatever is commanded, and whoever is killed meanwhile,", () => {
  test("every command has one outcome, nobody stays closed, and the log keeps its rules", async () => {
    await assert(
      asyncProperty(array(step, { minLength: 10, maxLength: 60, size: "max" }), async (taken) => {
        const simulation = await startedRun();
        const commands: number[] = [];
        for (const each of taken) {
          const command = await take(simulation, each);
          if (command !== undefined) commands.push(command);
        }
        await heal(simulation);
        for (const command of commands) expect(await simulation.hasOutcome(command)).toBe(true);
        for (const { gate } of simulation.processes) expect([gate.closed, gate.fixed]).toEqual([undefined, undefined]);
        expect(await violations(simulation)).toEqual([]);
        await isWhatItFolds(simulation);
      }),
      { numRuns: 100 },
    );
  });
});

async function isWhatItFolds(simulation: Simulation): Promise<void> {
  let state = initialState(run, simulation.log.stream);
  await simulation.log.read({ upTo: await simulation.log.lastSequence() }, (message) => {
    state = advance(state, message);
  });
  expect(simulation.state).toEqual(state);
}

/** What the rules say of the log, told event by event; each gives the rule that was broken, if one was. */
class Rules {
  readonly #stale = new Set<string>();
  readonly #attempts = new Map<string, number>();
  #open: string | undefined;

  broken({ type, data }: ControlEvent): string | undefined {
    if (type === "restore.started") return this.#started(data.assignments);
    if (type === "rollouts.marked") for (const { rollout, attempt } of data.rollouts) this.#raise(rollout, attempt);
    if (type === "rollouts.forgotten") for (const rollout of data.rollouts) this.#attempts.delete(rollout);
    return alive.has(type) && "checkpointId" in data ? this.#lives(type, data.checkpointId ?? "") : undefined;
  }

  #lives(type: string, id: string): string | undefined {
    if (type === "checkpoint.resumed") {
      this.#stale.add(id);
      if (this.#open === id) this.#open = undefined;
      return undefined;
    }
    if (this.#stale.has(id)) return `${type} of ${id}, which was resumed`; // C9, A1
    if (type !== "checkpoint.opened") return undefined;
    const other = this.#open;
    this.#open = id;
    return other === undefined ? undefined : `${id} was opened while ${other} was`;
  }

  #started(assignments: readonly Assignment[]): string | undefined {
    const old = assignments.find(({ rollout, to }) => to <= (this.#attempts.get(rollout) ?? 0));
    for (const { rollout, to } of assignments) this.#raise(rollout, to);
    return old === undefined ? undefined : `${old.rollout} attempt ${old.to} is not new`; // L7
  }

  #raise(rollout: string, attempt: number): void {
    this.#attempts.set(rollout, Math.max(attempt, this.#attempts.get(rollout) ?? 0));
  }
}

const alive = new Set([
  "checkpoint.opened",
  "checkpoint.prepared",
  "checkpoint.captured",
  "checkpoint.committed",
  "checkpoint.resumed",
]);

async function violations(simulation: Simulation): Promise<readonly string[]> {
  const rules = new Rules();
  const found: string[] = [];
  for (const { event, sequence } of await simulation.control()) {
    const fault = rules.broken(event);
    if (fault !== undefined) found.push(fault);
    if (event.type === "checkpoint.captured")
      found.push(...(await movedBefore(simulation, event.data.holdings, sequence)));
  }
  return found;
}

/** Who said something between its capture and the cut (L4). */
async function movedBefore(
  simulation: Simulation,
  holdings: readonly Holding[],
  cut: number,
): Promise<readonly string[]> {
  const found: string[] = [];
  for (const holding of holdings) {
    let end = 0;
    const subjects = [logSubject(run, holding)];
    await simulation.log.read({ upTo: cut, subjects }, ({ sequence }) => void (end = sequence));
    if (end !== holding.capturedSequence) found.push(`${holding.instance} went on before the cut ${cut}`);
  }
  return found;
}
