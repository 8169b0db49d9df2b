/** Sequences of commands and troubles, as they are drawn, and what is sent for each. */
import type { Operation, Phase } from "@holdpoint/schemas";
import { type Arbitrary, array, constantFrom, nat, oneof, record } from "fast-check";
import { listed, type Model, type Order, timeoutMs } from "./reference-model.ts";

/** An order as it is drawn: what it names is looked up when it is sent. */
export interface Drawn {
  /** Or what comes next for what is open. */
  readonly operation: Operation | "next";
  readonly which: number;
  readonly isLate: boolean;
}

export type Step =
  | { readonly do: "command"; readonly drawn: Drawn; readonly copies: number; readonly beside: readonly Drawn[] }
  | { readonly do: "dies" | "starts" | "breaks" | "mends" | "expires"; readonly who: number }
  | { readonly do: "time passes"; readonly ms: number }
  | { readonly do: "another leads" };

const usual = ["prepare", "capture", "proceed", "commit", "resume", "checkpoint"] as const;
const others = ["renew", "restore", "retire", "retire", "forget", "remove", "release", "status"] as const;
const anOrder: Arbitrary<Drawn> = record({
  operation: constantFrom<Drawn["operation"]>("next", "next", "next", ...usual, ...usual, ...others),
  which: nat(11),
  isLate: nat(15).map((chance) => chance === 0),
});
export const steps: Arbitrary<readonly Step[]> = array(
  oneof(
    {
      weight: 12,
      arbitrary: record({
        do: constantFrom("command" as const),
        drawn: anOrder,
        copies: constantFrom(1, 1, 2),
        beside: oneof(constantFrom([]), array(anOrder, { maxLength: 3 })),
      }),
    },
    {
      weight: 3,
      arbitrary: record({
        do: constantFrom("dies", "starts", "starts", "starts", "breaks", "mends", "mends", "expires"),
        who: nat(3),
      }),
    },
    {
      weight: 1,
      arbitrary: record({ do: constantFrom("time passes" as const), ms: oneof(nat(100_000), nat(1_000_000)) }),
    },
    { weight: 1, arbitrary: record({ do: constantFrom("another leads" as const) }) },
  ),
  { minLength: 4, maxLength: 14, size: "max" },
);

/** The id that is drawn: most often what is open, or a fresh one. */
function idOf({ open, stale }: Model, { operation, which }: Drawn): string {
  const fresh = `${operation === "restore" ? "x" : "c"}${stale.size + (which % 2)}`;
  if (which < 8) return open?.id ?? fresh;
  return which < 10 ? fresh : nth([...stale], which);
}

function nth(ids: readonly string[], which: number): string {
  return ids[which % Math.max(1, ids.length)] ?? "c0";
}

/** In each phase, what leads on. */
const onwards: Readonly<Record<Phase, readonly Operation[]>> = {
  idle: ["prepare", "checkpoint"],
  preparing: ["prepare", "resume"],
  prepared: ["capture", "commit"],
  captured: ["proceed", "commit"],
  committed: ["proceed", "resume"],
  restored: ["resume", "renew"],
};

/** What `drawn` names, as things are now. */
export function orderOf(model: Model, drawn: Drawn): Order {
  const { isLate, which } = drawn;
  const operation = drawn.operation === "next" ? (onwards[model.phase][which % 2] ?? "status") : drawn.operation;
  return { operation, isLate, id: "", payload: "", ...(named[operation] ?? withId)(model, drawn) };
}

type Named = (model: Model, drawn: Drawn) => Partial<Pick<Order, "id" | "payload">>;

const withId: Named = (model, drawn) => ({ id: idOf(model, drawn) });

const named: Partial<Record<Operation, Named>> = {
  restore: (model, drawn) => ({ id: idOf(model, drawn), payload: nth([...model.kept.keys()], drawn.which) }),
  retire: (_, { which }) => ({ payload: which % 3 === 0 ? "r1" : "r1 r2" }),
  forget: (_, { which }) => ({ payload: which % 2 === 0 ? "r1" : "r2" }),
  release: ({ lastResumed = "c0", kept, stale }, { which }) => {
    const some = which % 3 === 0 ? [] : [...kept.keys()].slice(-(which % 3));
    return { id: which < 10 ? lastResumed : nth([...stale], which), payload: some.join(" ") };
  },
  status: () => ({}),
  remove: (_, { which }) => ({ payload: ["agent.1", "agent.1", "agent.0", "model.0"][which % 4] ?? "" }),
};

/** The body of the message that says `order`. */
export function bodyOf(model: Model, { operation, id, payload, isLate }: Order, nowMs: number): object {
  const deadline = isLate ? { deadlineAt: new Date(nowMs - 1_000).toISOString() } : { timeoutMs };
  switch (operation) {
    case "status":
      return {};
    case "restore":
      return { ...deadline, checkpointId: id, source: payload };
    case "retire":
      return {
        ...deadline,
        rollouts: listed(payload).map((rollout) => ({ rollout, attempt: model.highest.get(rollout) ?? 0 })),
      };
    case "forget":
      return { ...deadline, rollouts: [payload] };
    case "release":
      return { ...deadline, checkpointId: id, kept: listed(payload) };
    case "remove":
      return { ...deadline, ...processOf(payload) };
    default:
      return { ...deadline, checkpointId: id };
  }
}

function processOf(name: string): object {
  const [role, worker] = name.split(".");
  return { role, instance: `${role}1`, worker };
}
