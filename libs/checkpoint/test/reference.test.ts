/**
 * Whatever is commanded, in whatever order, whoever is silent, broken, killed or removed: the coordinator answers what a page of rules
 * says. Sequences are drawn from one seed; `HOLDPOINT_SEQUENCES` draws more of them.
 */
import { react } from "@holdpoint/checkpoint";
import { assert, check, property } from "fast-check";
import { expect, test } from "vitest";
import { begin, ranOut, settled } from "./reference-course.ts";
import { type Model, type Order, resumed, type UnderWay } from "./reference-model.ts";
import { bodyOf, orderOf, type Step, steps } from "./reference-steps.ts";
import { beginningOf, runOut, settle, stories } from "./small-run-stories.ts";
import { copied, expire, nameOf, send, type SmallProcess, start, takeOver, type World } from "./small-run.ts";

const seed = 20_261;
/** How many sequences are drawn. */
const numRuns = Number(process.env["HOLDPOINT_SEQUENCES"] ?? 3_000);

const template = beginningOf(stories["one checkpoint"], []);

function newModel(): Model {
  return {
    phase: "idle",
    open: undefined,
    lastResumed: undefined,
    stale: new Set(),
    marks: new Map(),
    highest: new Map([
      ["r1", 0],
      ["r2", 0],
    ]),
    live: new Set(["r1", "r2"]),
    kept: new Map(),
    expected: new Map(template.processes.map((process) => [nameOf(process), "well"])),
    underWay: [],
  };
}

class Compared {
  readonly world: World;
  readonly model = newModel();
  /** Each command with what the model says of it. */
  readonly sent: { readonly command: number; readonly begun: UnderWay }[] = [];

  constructor(decide: World["decide"]) {
    this.world = { ...copied(template), decide };
  }

  take(step: Step): void {
    if (step.do === "command") this.#command(step);
    else this.#happen(step);
    const { model, world } = this;
    if (model.open !== undefined && world.nowMs >= model.open.leaseUntilMs) resumed(model, model.open.id);
    settle(world);
    runOut(world);
  }

  #command({ drawn: first, copies, beside }: Extract<Step, { do: "command" }>): void {
    const order = orderOf(this.model, first);
    for (let copy = 0; copy < copies; copy++) this.#send(order);
    this.#settle();
    for (const each of beside) {
      this.#send(orderOf(this.model, each));
      this.#settle();
    }
    runOut(this.world);
    ranOut(this.model);
    this.#observe();
  }

  #send(order: Order): void {
    const { world, model } = this;
    const command = send(world, order.operation, bodyOf(model, order, world.nowMs));
    this.sent.push({ command, begun: begin(model, order, world.nowMs) });
  }

  #settle(): void {
    settle(this.world);
    settled(this.model);
    this.#observe();
  }

  /** Which rollouts a checkpoint names, and who held them, is not foretold but read. */
  #observe(): void {
    const { world, model } = this;
    for (const { command, begun } of this.sent) {
      const { operation, id } = begun.order;
      const outcome = world.outcomes.get(command);
      if (outcome?.ok !== true || (operation !== "commit" && operation !== "checkpoint")) continue;
      const { continued = [], holdings = [] } = outcome.result;
      const holders = holdings.filter(({ sessions }) => sessions > 0).map(({ role }) => role);
      if (!this.#kept.has(id)) model.kept.set(id, { rollouts: continued.map(({ rollout }) => rollout), holders });
      this.#kept.add(id);
    }
  }

  readonly #kept = new Set<string>();

  #happen(step: Exclude<Step, { do: "command" }>): void {
    if (step.do === "another leads") takeOver(this.world);
    else if (step.do === "time passes") this.world.nowMs += step.ms;
    else this.#trouble(step.do, step.who);
  }

  #trouble(what: "dies" | "starts" | "breaks" | "mends" | "expires", who: number): void {
    const { world, model } = this;
    const process = world.processes[who];
    if (process === undefined) return;
    const name = nameOf(process);
    const closed = process.gate.closed?.checkpointId;
    troubles[what](world, process);
    const hasExpired = what === "expires" && process.alive && closed !== undefined;
    if (hasExpired && closed === model.open?.id) resumed(model, closed);
    if (what === "starts" || model.expected.has(name)) model.expected.set(name, conditionOf(process));
  }

  /** What both say, side by side. */
  get both(): readonly [unknown, unknown] {
    const { world, model, sent } = this;
    const { state, outcomes } = world;
    const codes = sent.map(({ command, begun: { order } }) => {
      const outcome = outcomes.get(command);
      return [order, outcome === undefined ? "none" : outcome.ok ? "ok" : outcome.problem.code];
    });
    const is = {
      codes,
      phase: state.phase,
      open: state.open?.checkpointId,
      leaseUntilMs: state.open?.leaseUntilMs,
      lastResumed: state.lastResumed,
      stale: [...state.stale],
      marks: new Map(
        [...state.rollouts].flatMap(([rollout, { mark }]) => (mark >= 0 ? [[rollout, mark] as const] : [])),
      ),
      kept: [...state.restorable.keys()],
    };
    const said = {
      codes: sent.map(({ begun: { order, code = "none" } }) => [order, code]),
      phase: model.phase,
      open: model.open?.id,
      leaseUntilMs: model.open?.leaseUntilMs,
      lastResumed: model.lastResumed,
      stale: [...model.stale],
      marks: model.marks,
      kept: [...model.kept.keys()],
    };
    return [is, said];
  }
}

const troubles = {
  dies: (_: World, process: SmallProcess) => void (process.alive = false),
  starts: start,
  breaks: (_: World, process: SmallProcess) => void (process.broken = true),
  mends: (_: World, process: SmallProcess) => void (process.broken = false),
  expires: (world: World, process: SmallProcess) => void (process.alive && expire(world, process)),
};

function conditionOf({ alive, broken }: SmallProcess): "well" | "silent" | "broken" {
  if (!alive) return "silent";
  return broken ? "broken" : "well";
}

/** How often each operation came to each code. */
class Tally {
  readonly #counts = new Map<string, number>();

  add({ order, code }: UnderWay): void {
    const name = `${order.operation} ${code}`;
    this.#counts.set(name, 1 + (this.#counts.get(name) ?? 0));
  }

  get text(): string {
    const lines = [...this.#counts].map(([name, count]) => `${name}: ${count}`);
    return lines.toSorted((one, other) => one.localeCompare(other)).join(", ");
  }
}

/** That what `decide` does, and what the model says, is the same after each of `taken`. */
function isAsSaid(taken: readonly Step[], decide: World["decide"]): Compared {
  const compared = new Compared(decide);
  for (const step of taken) {
    compared.take(step);
    const [is, said] = compared.both;
    expect(is).toEqual(said);
  }
  return compared;
}

const forgetful: World["decide"] = (context) => react({ ...context, state: { ...context.state, stale: new Set() } });

/** A bound against hanging, in milliseconds. */
const timeout = 120_000 + numRuns * 40;

test("every outcome, and what stands after it, is what the reference model says", { timeout }, () => {
  const tally = new Tally();
  const drawn = property(steps, (taken) => {
    for (const { begun } of isAsSaid(taken, react).sent) tally.add(begun);
  });
  assert(drawn, { numRuns, seed });
  expect(tally.text).toContain("restore ok");
  process.stdout.write(`${numRuns} sequences; ${tally.text}\n`);
});

test("a coordinator that forgets which ids were resumed is found by a short sequence", () => {
  const drawn = property(steps, (taken) => void isAsSaid(taken, forgetful));
  const { failed, counterexample } = check(drawn, { numRuns: 200, seed });
  expect(failed).toBe(true);
  expect(counterexample?.[0].length).toBeLessThan(8);
});
