/** What must hold in every state of a small run, and where every state must lead. */
import { type CoordinatorState, type Decision, leaseEndOf, obligationsOf } from "@holdpoint/checkpoint";
import { keyOf } from "./small-run-key.ts";
import { act, catchUp, copied, decision, nameOf, obey, type SmallProcess, start, type World } from "./small-run.ts";

const decisions = new WeakMap<World, Decision>();

/** What the leader does next in a world that changes no more. */
export function decidedIn(world: World): Decision {
  const decided = decisions.get(world) ?? decision(world);
  decisions.set(world, decided);
  return decided;
}

/** Those that broke a rule, or would leave a hold that never ends; `healed` remembers worlds that end well. */
export function faultOf(world: World, healed: Set<string>): string | undefined {
  const [fault] = world.ghost.faults;
  return fault ?? gateFault(world) ?? awaitedFault(world) ?? booksFault(world) ?? holdFault(world, healed);
}

function gateFault({ processes }: World): string | undefined {
  for (const process of processes) {
    const { alive, gate, fold, unread } = process;
    if (alive && gate.closed !== undefined && leaseEndOf(gate) === undefined)
      return `R7: ${nameOf(process)} is closed without a lease`;
    if (alive && unread === undefined && gate !== fold)
      return `R8: ${nameOf(process)} knows something else than its successor would`;
  }
  return undefined;
}

/** They wait for each ask as long as it has; all others for their command's deadline. */
const tolerant: ReadonlySet<string> = new Set(["proceed", "resume", "retire", "release"]);

/** Whoever is awaited, and reads at once, knows that it is; but for what is over, as soon as the leader says so. */
function awaitedFault({ state, processes }: World): string | undefined {
  if (state.open?.expired === true) return undefined;
  for (const { asks, timedOut } of state.ops.values()) {
    const current = asks.at(-1);
    if (current === undefined || (tolerant.has(current.operation) ? current.passed : timedOut)) continue;
    const missing = missingIn(state, current);
    const unaware = processes.filter(({ alive, unread, gate, ...process }) => {
      const owes = gate.asks.some(({ sequence }) => sequence === current.sequence);
      return alive && unread === undefined && missing.has(keyOfProcess(process)) && !owes;
    });
    if (unaware[0] !== undefined)
      return `R10: ${nameOf(unaware[0])} is awaited to ${current.operation}, and does not owe it`;
  }
  return undefined;
}

function missingIn({ processes }: CoordinatorState, { roles, answers }: CoordinatorAsk): ReadonlySet<string> {
  const expected = [...processes.values()].filter(({ expected: is, role }) => is && roles.includes(role));
  return new Set(expected.map(({ key }) => key).filter((key) => !answers.has(key)));
}

type CoordinatorAsk = NonNullable<ReturnType<CoordinatorState["ops"]["get"]>>["asks"][number];

function keyOfProcess({ role, instance, worker }: Pick<SmallProcess, "role" | "instance" | "worker">): string {
  return `${role}.${instance}.${worker}`;
}

/** The coordinator's fold knows what the log said. */
function booksFault({ state, ghost }: World): string | undefined {
  if (state.open?.checkpointId !== ghost.open[0])
    return `R9: ${ghost.open[0]} is open, and the fold says ${state.open?.checkpointId}`;
  const forgotten = [...ghost.stale].filter((id) => !state.stale.has(id));
  if (forgotten.length > 0) return `R9: the fold has forgotten that ${forgotten.join()} was resumed`;
  const believed = [...state.rollouts].find(([rollout, { live }]) =>
    live.some((attempt) => attempt <= (ghost.marks.get(rollout) ?? -1)),
  );
  return believed === undefined ? undefined : `R5: ${believed[0]} is live under an attempt that is refused`;
}

const longestHealing = 1_000;

/** Everybody is well again, and the lease runs out: whatever does not end then never ends. */
function holdFault(world: World, healed: Set<string>): string | undefined {
  const well = healedOf(world);
  const path: string[] = [];
  for (let isMoving = true; isMoving; isMoving = round(well) || outlived(well)) {
    const key = keyOf(well, false);
    if (healed.has(key)) return remembered(path, healed);
    path.push(key);
    if (path.length > longestHealing) return "R7: it never settles";
  }
  return well.ghost.faults[0] ?? heldBy(well) ?? remembered(path, healed);
}

function healedOf(world: World): World {
  const well = copied(world);
  for (const process of well.processes) {
    if (!process.alive) start(well, process);
    if (process.unread !== undefined) catchUp(process);
  }
  return well;
}

function remembered(path: readonly string[], healed: Set<string>): undefined {
  for (const key of path) healed.add(key);
  return undefined;
}

/** Everybody does all that there is to do now; false where there is nothing. */
function round(well: World): boolean {
  let isMoved = false;
  for (let decided = decision(well); decided.kind === "append"; decided = decision(well)) {
    if (!act(well, decided)) return false;
    isMoved = true;
  }
  for (const process of well.processes) {
    while (process.alive && obligationsOf(process.gate).length > 0) {
      obey(well, process);
      isMoved = true;
    }
    if (!process.alive) start(well, process);
  }
  return isMoved;
}

/** Time passes up to what is waited for; false where nothing is. */
function outlived(well: World): boolean {
  const decided = decision(well);
  if (decided.kind !== "wait" || !Number.isFinite(decided.untilMs)) return false;
  well.nowMs = Math.max(well.nowMs, decided.untilMs);
  return true;
}

function heldBy({ state, processes }: World): string | undefined {
  if (state.open !== undefined) return `R7: ${state.open.checkpointId} never ends`;
  if (state.ops.size + state.queue.size > 0) return "R7: a command never has an outcome";
  const held = processes.find(
    ({ gate }) => gate.closed !== undefined || gate.fixed !== undefined || gate.asks.length > 0,
  );
  return held === undefined ? undefined : `R7: ${nameOf(held)} never serves again`;
}
