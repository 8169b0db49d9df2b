/** Everything that can happen to a small run, as a space to explore, and what must hold in each of its states. */
import { obligationsOf } from "@holdpoint/checkpoint";
import type { Operation } from "@holdpoint/schemas";
import type { Space } from "@holdpoint/testing";
import { decidedIn, faultOf } from "./small-run-holds.ts";
import { keyOf } from "./small-run-key.ts";
import {
  act,
  catchUp,
  send,
  copied,
  decision,
  draftsBy,
  expire,
  isAccepted,
  lag,
  nameOf,
  obey,
  type SmallProcess,
  start,
  takeOver,
  type World,
} from "./small-run.ts";

/** The commands of a story by name: what each says. How often each may be sent is in the world's `left`, under its name. */
export type Commands = Readonly<Record<string, readonly [Operation, object]>>;

/** What a process may do, and when. */
const deeds: Readonly<Record<string, { may: (process: SmallProcess, world: World) => boolean; does: Deed }>> = {
  answers: { may: ({ alive, gate }) => alive && obligationsOf(gate).length > 0, does: obey },
  dies: {
    may: ({ alive }, { left }) => alive && has(left, "dies"),
    does: spending("dies", (_, process) => void (process.alive = false)),
  },
  starts: { may: ({ alive }) => !alive, does: start },
  lags: {
    may: ({ alive, unread }, { left }) => alive && unread === undefined && has(left, "lags"),
    does: spending("lags", (_, process) => lag(process)),
  },
  reads: { may: ({ alive, unread }) => alive && (unread?.length ?? 0) > 0, does: (_, process) => catchUp(process) },
  expires: {
    may: ({ alive, gate }, { left }) => alive && gate.closed !== undefined && has(left, "expires"),
    does: spending("expires", expire),
  },
};

type Deed = (world: World, process: SmallProcess) => void;

function has(left: World["left"], name: string): boolean {
  return (left[name] ?? 0) > 0;
}

function spending(name: string, deed: Deed): Deed {
  return (world, process) => {
    spend(world, name);
    deed(world, process);
  };
}

function spend({ left }: World, name: string): void {
  left[name] = (left[name] ?? 0) - 1;
}

function actionsOf(world: World, commands: Commands): string[] {
  const { left, processes } = world;
  const actions = Object.keys(commands).filter((name) => has(left, name));
  const now = mayHappen(world);
  for (const [name, may] of Object.entries(now)) if (may && has(left, name)) actions.push(name);
  if (decidedIn(world).kind === "append") actions.push("the leader decides");
  for (const process of processes) {
    for (const [deed, { may }] of Object.entries(deeds)) {
      if (may(process, world)) actions.push(`${nameOf(process)} ${deed}`);
    }
  }
  return actions;
}

/** What happens to nobody in particular, and whether it can now. */
function mayHappen(world: World): Readonly<Record<string, boolean>> {
  const { nowMs, state } = world;
  const decided = decidedIn(world);
  return {
    "another leads": true,
    "the leader is slow": true,
    "time passes": decided.kind === "wait" && Number.isFinite(decided.untilMs),
    "the lease ends": (state.open?.leaseUntilMs ?? nowMs) > nowMs,
  };
}

/** What `action` makes of `world`, in place. A leader that is not slow decides at once whatever is due. */
export function happen(world: World, action: string, commands: Commands): void {
  done(world, action, commands);
  while (!isSlow(world) && decision(world).kind === "append") lead(world);
}

/** Once it is slow it stays so, and decides one thing at a time. */
function isSlow({ left, ghost }: World): boolean {
  return left["the leader is slow"] === -1 || ghost.faults.length > 0;
}

function done(world: World, action: string, commands: Commands): void {
  if (action in world.left) happenOnce(world, action, commands);
  else if (action === "the leader decides") lead(world);
  else {
    const [name, deed = ""] = action.split(" ");
    const process = world.processes.find((each) => nameOf(each) === name);
    if (process === undefined || deeds[deed] === undefined) throw new Error(`nothing can do: ${action}`);
    deeds[deed].does(world, process);
  }
}

function happenOnce(world: World, action: string, commands: Commands): void {
  spend(world, action);
  const sent = commands[action];
  if (sent !== undefined) send(world, ...sent);
  else if (action === "another leads") takeOver(world);
  else if (action === "the leader is slow") world.left[action] = -1;
  else {
    const decided = decision(world);
    const waited = decided.kind === "wait" ? decided.untilMs : world.nowMs;
    world.nowMs = action === "time passes" ? waited : (world.state.open?.leaseUntilMs ?? world.nowMs);
  }
}

/**
 * The leader appends what it has decided. So would one that was followed meanwhile: control only grows, so that what is refused one
 * message later is refused for ever.
 */
function lead(world: World): void {
  const decided = decision(world);
  if (decided.kind !== "append") return;
  const { faults } = world.ghost;
  const isStoredLate = isAccepted(world, draftsBy(world, decided), world.state.controlSequence + 1);
  if (isStoredLate) faults.push("R5: a coordinator that was followed could still write");
  if (!act(world, decided)) faults.push("the log refused what the leader decided");
}

/** The space of small runs in which `commands` may be sent. */
export function spaceOf(commands: Commands): Space<World, string> {
  const healed = new Set<string>();
  return {
    actions: (world) => actionsOf(world, commands),
    after: (world, action) => {
      const next = copied(world);
      happen(next, action, commands);
      return next;
    },
    key: keyOf,
    fault: (world) => faultOf(world, healed),
  };
}
