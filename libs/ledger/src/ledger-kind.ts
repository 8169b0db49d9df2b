/** How the sessions of a model server come to be and change: a session is an episode, its state the episode's ledger. */
import type { Edges, ModelEvent, ParticipantEvent } from "@holdpoint/schemas";
import { delivered, deliveredOnly, emptyLedger, finished, type Hash, type Ledger, withheld } from "./ledger.ts";

/** What stands on the log of a model server. */
export type LedgerEvent = ModelEvent | ParticipantEvent;

/** The ledger after `event`; events that are about no call leave it as it is. */
export function evolveLedger(ledger: Ledger, { type, data }: LedgerEvent, hash: Hash): Ledger {
  if (type === "call.finished") {
    const { rollout: _, ...row } = data;
    return finished(ledger, row);
  }
  if (type === "call.delivered") return delivered(ledger, data.turn, hash);
  if (type === "call.withheld") return withheld(ledger, data.turn, hash);
  return ledger;
}

/** JSON that says the ledger: small, and told in constant time. */
export function summaryOf({ head, held }: Ledger): unknown {
  return {
    calls: head?.count ?? 0,
    chain: head?.chain ?? null,
    held: held.map(({ turn, request, response }) => [turn, request, response.digest]),
  };
}

/** What the model says of the calls of an episode; the agent has to say the same. */
export function edgesOf({ head }: Ledger): Edges {
  return { calls: { received: head?.count ?? 0, last: head?.row.response.digest ?? null } };
}

/** The sessions of a model server. The first call of an episode opens its session. */
export function ledgerKind(hash: Hash) {
  return {
    open: (event: LedgerEvent): Ledger | undefined => (event.type === "call.started" ? emptyLedger : undefined),
    evolve: (ledger: Ledger, event: LedgerEvent): Ledger => evolveLedger(ledger, event, hash),
    fix: deliveredOnly,
    summary: summaryOf,
    edges: edgesOf,
  };
}
