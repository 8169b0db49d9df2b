/**
 * The ledger of one episode: its model calls, as an immutable value.
 *
 * Owns: which calls have a response, which of these the caller has, and from which call each goes on.
 * Does not own: the responses' meaning, nor whether a call may be made now.
 *
 *  1. A call has one name, its turn, and one request: the first response to it stands, whoever asks again (L3).
 *  2. The lineage holds the delivered calls, newest first, each on the one that its caller had before it. A finished call
 *     that is not delivered, or was withheld again, is `held`: no call goes on from it.
 *  3. `chain` says the whole lineage in one digest. The attempt is no part of it: a replacement that says the same has
 *     the same chain.
 *  4. A call that is new, or is the latest one, costs the same at turn 10,000 as at turn 10. Only a question about a call
 *     further back walks there.
 */
import type { Content, Digest } from "@holdpoint/schemas";

/** A call that has a response. */
export interface LedgerRow {
  readonly turn: number;
  /** The attempt that made the call. */
  readonly attempt: number;
  readonly request: Digest;
  readonly response: Content;
  /** What the trainer needs of it; null: nothing was staged. */
  readonly staging: Digest | null;
  readonly policyVersion: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
}

/** A delivered call, and the lineage that it goes on from. */
export interface Link {
  readonly row: LedgerRow;
  readonly parent: Link | undefined;
  /** Calls up to and with this one. */
  readonly count: number;
  /** The highest turn up to and with this one. */
  readonly highest: number;
  readonly chain: Digest;
}

export interface Ledger {
  readonly head: Link | undefined;
  /** Oldest first; hardly ever more than one. */
  readonly held: readonly LedgerRow[];
}

/** Lower-case hexadecimal SHA-256 of a text. */
export type Hash = (text: string) => Digest;

export const emptyLedger: Ledger = { head: undefined, held: [] };

/** What the ledger says to a call. `delivered`: its caller has the response, as far as the ledger knows. */
export type Lookup =
  | { readonly status: "unknown" }
  | { readonly status: "answered"; readonly row: LedgerRow; readonly delivered: boolean }
  /** The turn was asked with another request. */
  | { readonly status: "conflicting"; readonly row: LedgerRow };

/** What is known of the call of `turn` with this request. */
export function lookup(ledger: Ledger, turn: number, request: Digest): Lookup {
  const held = heldRow(ledger, turn);
  const row = held ?? linkOf(ledger.head, turn)?.row;
  if (row === undefined) return { status: "unknown" };
  if (row.request !== request) return { status: "conflicting", row };
  return { status: "answered", row, delivered: held === undefined };
}

/** How many calls back a caller that does not name its turns is known again. */
const recallDepth = 64;

/** The latest call with this request, of a caller that does not name its turns; looks at the last 64 delivered ones. */
export function recall({ head, held }: Ledger, request: Digest): LedgerRow | undefined {
  const found = held.findLast((row) => row.request === request);
  if (found !== undefined) return found;
  let link = head;
  for (let depth = 0; depth < recallDepth && link !== undefined; depth++) {
    if (link.row.request === request) return link.row;
    link = link.parent;
  }
  return undefined;
}

/** The turn after every turn that has a response, from 0. */
export function nextTurn({ head, held }: Ledger): number {
  return Math.max(head?.highest ?? -1, ...held.map(({ turn }) => turn)) + 1;
}

/** The ledger with a call that has a response. A turn that has one already keeps it. */
export function finished(ledger: Ledger, row: LedgerRow): Ledger {
  const isKnown = heldRow(ledger, row.turn) !== undefined || linkOf(ledger.head, row.turn) !== undefined;
  return isKnown ? ledger : { ...ledger, held: [...ledger.held, row] };
}

/** The ledger after the response of `turn` went out: the call goes on from what was delivered before. */
export function delivered(ledger: Ledger, turn: number, hash: Hash): Ledger {
  const row = heldRow(ledger, turn);
  if (row === undefined) return ledger;
  return { head: linked(ledger.head, row, hash), held: ledger.held.filter((other) => other !== row) };
}

/** The ledger after the caller has shown that it lacks the response of `turn`. */
export function withheld({ head, held }: Ledger, turn: number, hash: Hash): Ledger {
  const link = linkOf(head, turn);
  if (link === undefined) return { head, held };
  return { head: without(head, link, hash), held: [...held, link.row] };
}

/** The ledger as a checkpoint holds it: less what its caller lacks. The caller stands before that, and asks again. */
export function deliveredOnly(ledger: Ledger): Ledger {
  return ledger.held.length === 0 ? ledger : { head: ledger.head, held: [] };
}

/** A row of the lineage with the turn that it goes on from (null: the first). */
export interface LineageRow extends LedgerRow {
  readonly parent: number | null;
}

/** The lineage, oldest first. */
export function lineage({ head }: Ledger): readonly LineageRow[] {
  const rows: LineageRow[] = [];
  for (const { row, parent } of links(head)) rows.push({ ...row, parent: parent?.row.turn ?? null });
  return rows.toReversed();
}

/** The lineage's links, newest first. */
export function* links(head: Link | undefined): Generator<Link, undefined> {
  for (let link = head; link !== undefined; link = link.parent) yield link;
}

function heldRow({ held }: Ledger, turn: number): LedgerRow | undefined {
  return held.find((row) => row.turn === turn);
}

/** The link of `turn`; the walk ends where every turn below is lower. */
function linkOf(head: Link | undefined, turn: number): Link | undefined {
  for (const link of links(head)) {
    if (link.row.turn === turn) return link;
    if (link.highest < turn) return undefined;
  }
  return undefined;
}

function linked(parent: Link | undefined, row: LedgerRow, hash: Hash): Link {
  const { turn, request, response, staging, policyVersion, promptTokens, completionTokens } = row;
  const said = [turn, request, response.digest, staging, policyVersion, promptTokens, completionTokens];
  return {
    row,
    parent,
    count: (parent?.count ?? 0) + 1,
    highest: Math.max(parent?.highest ?? -1, turn),
    chain: hash(JSON.stringify([parent?.chain ?? null, ...said])),
  };
}

/** `head` with `gone` taken out; what goes on from it goes on from its parent. */
function without(head: Link | undefined, gone: Link, hash: Hash): Link | undefined {
  const later: LedgerRow[] = [];
  for (const link of links(head)) {
    if (link === gone) break;
    later.push(link.row);
  }
  return later.reduceRight<Link | undefined>((parent, row) => linked(parent, row, hash), gone.parent);
}
