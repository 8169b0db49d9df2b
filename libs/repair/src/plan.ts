/** What a run works on: groups of sibling rollouts of one task each, fixed by the run's seed before it starts. */
import { HoldpointError } from "@holdpoint/errors";
import { type PackageSpec, packages } from "./packages.ts";
import { randomOf, seedFrom } from "./random.ts";
import { type Task, taskOf } from "./task.ts";

export interface PlannedGroup {
  /** `g0`, `g1`, … */
  readonly groupId: string;
  readonly task: Task;
  /** `g0-r0`, `g0-r1`, … */
  readonly rollouts: readonly { readonly rolloutId: string }[];
  /** How many groups its policy may lag behind, as planned for all groups. */
  readonly policyLag: number;
  /** The policy it is sampled with: the weights after this many groups, in the order of the plan, were trained. */
  readonly policyVersion: number;
}

export interface PlanOptions {
  /** Of the run: an integer of [0, 2^32). */
  readonly seed: number;
  /** A positive multiple of `siblings`. Default: 16. */
  readonly rollouts?: number;
  /** Rollouts of one task. At least 2, else nothing can be learnt from a group. Default: 4. */
  readonly siblings?: number;
  /**
   * Group n starts once all groups before n - `policyLag` are trained; so at most `policyLag` + 1 groups are on their way at
   * once, and what each is sampled with does not depend on which ends first. Default: 1.
   */
  readonly policyLag?: number;
  /** Default: all. */
  readonly packages?: readonly PackageSpec[];
}

/**
 * The groups of a run, in the order in which they start and are trained. Packages take turns, in an order drawn anew for
 * each round.
 *
 * @throws HoldpointError `invalid_request` where a number is out of range
 */
export function planRun(options: PlanOptions): readonly PlannedGroup[] {
  const { seed, rollouts = 16, siblings = 4, policyLag = 1, packages: specs = packages } = options;
  requireInteger("siblings", siblings, 2);
  requireInteger("rollouts", rollouts, siblings);
  requireInteger("policyLag", policyLag, 0);
  requireInteger("packages", specs.length, 1);
  if (rollouts % siblings !== 0) {
    throw new HoldpointError("invalid_request", `rollouts: expected a multiple of ${siblings}, found ${rollouts}`);
  }
  const count = rollouts / siblings;
  return specsInTurn(seed, specs, count).map((spec, index) => ({
    groupId: `g${index}`,
    task: taskOf({ seed: seedFrom("group", seed, index), spec }),
    rollouts: Array.from({ length: siblings }, (_, sibling) => ({ rolloutId: `g${index}-r${sibling}` })),
    policyLag,
    policyVersion: Math.max(0, index - policyLag),
  }));
}

function requireInteger(name: string, value: number, least: number): void {
  if (Number.isInteger(value) && value >= least) return;
  throw new HoldpointError("invalid_request", `${name}: expected a whole number of at least ${least}, found ${value}`);
}

function specsInTurn(seed: number, specs: readonly PackageSpec[], count: number): readonly PackageSpec[] {
  const rounds = Array.from({ length: Math.ceil(count / specs.length) }, (_, round) => {
    const random = randomOf(seedFrom("packages", seed, round));
    return specs
      .map((spec) => ({ spec, key: random.uint32() }))
      .toSorted((one, other) => one.key - other.key)
      .map(({ spec }) => spec);
  });
  return rounds.flat().slice(0, count);
}
