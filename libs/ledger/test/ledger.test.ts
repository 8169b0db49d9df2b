import {
  delivered,
  deliveredOnly,
  emptyLedger,
  finished,
  type Ledger,
  lineage,
  lookup,
  nextTurn,
  recall,
  withheld,
} from "@holdpoint/ledger";
import { describe, expect, test } from "vitest";
import { hash, request, row } from "./rows.ts";

/** The calls of these turns, each finished and delivered in this order. */
function conversation(...turns: readonly number[]): Ledger {
  return turns.reduce((ledger, turn) => delivered(finished(ledger, row(turn)), turn, hash), emptyLedger);
}

function turnsOf(ledger: Ledger): number[] {
  return lineage(ledger).map(({ turn }) => turn);
}

describe("asking for a call", () => {
  test("that never finished finds nothing", () => {
    expect(lookup(emptyLedger, 0, request(0))).toEqual({ status: "unknown" });
    expect(lookup(conversation(0, 1), 2, request(2))).toEqual({ status: "unknown" });
  });

  test("that was delivered finds its row, wherever it stands", () => {
    for (const turn of [0, 1, 2]) {
      const answer = { status: "answered", row: row(turn), delivered: true };
      expect(lookup(conversation(0, 1, 2), turn, request(turn))).toEqual(answer);
    }
  });

  test("that finished but was not delivered finds its row, undelivered", () => {
    const ledger = finished(conversation(0), row(1));
    expect(lookup(ledger, 1, request(1))).toEqual({ status: "answered", row: row(1), delivered: false });
  });

  test("with another request conflicts, delivered or not", () => {
    const ledger = finished(conversation(0), row(1));
    expect(lookup(ledger, 0, request(7))).toEqual({ status: "conflicting", row: row(0) });
    expect(lookup(ledger, 1, request(7))).toEqual({ status: "conflicting", row: row(1) });
  });

  test("of a turn that was passed over finds nothing, and one below it is still found", () => {
    const ledger = conversation(0, 4, 2);
    expect(lookup(ledger, 3, request(3))).toEqual({ status: "unknown" });
    expect(lookup(ledger, 1, request(1))).toEqual({ status: "unknown" });
    expect(lookup(ledger, 4, request(4))).toMatchObject({ status: "answered" });
    expect(lookup(ledger, 0, request(0))).toMatchObject({ status: "answered" });
  });
});

describe("a response", () => {
  test("that finished second for its turn does not replace the first", () => {
    const twice = finished(finished(emptyLedger, row(0)), { ...row(0), request: request(9) });
    expect(lookup(twice, 0, request(0))).toMatchObject({ status: "answered" });
    const afterDelivery = finished(conversation(0, 1), { ...row(0), request: request(9) });
    expect(afterDelivery).toEqual(conversation(0, 1));
  });

  test("that is delivered again, or was never finished, changes nothing", () => {
    expect(delivered(conversation(0, 1), 1, hash)).toEqual(conversation(0, 1));
    expect(delivered(conversation(0), 5, hash)).toEqual(conversation(0));
  });

  test("that is delivered leaves others that are not", () => {
    const ledger = delivered(finished(finished(emptyLedger, row(0)), row(1)), 1, hash);
    expect(ledger.held).toEqual([row(0)]);
    expect(turnsOf(ledger)).toEqual([1]);
  });

  test("that was withheld is held again, and what was delivered before it is the end of the lineage", () => {
    const ledger = withheld(conversation(0, 1), 1, hash);
    expect(ledger.held).toEqual([row(1)]);
    expect(ledger.head).toEqual(conversation(0).head);
    expect(lookup(ledger, 1, request(1))).toMatchObject({ delivered: false });
    expect(delivered(ledger, 1, hash)).toEqual(conversation(0, 1));
  });

  test("that was withheld in the middle leaves later calls on its parent", () => {
    const ledger = withheld(conversation(0, 1, 2, 3), 1, hash);
    expect(ledger.head).toEqual(conversation(0, 2, 3).head);
    expect(lineage(ledger).map(({ turn, parent }) => [turn, parent])).toEqual([
      [0, null],
      [2, 0],
      [3, 2],
    ]);
  });

  test("that is held, or unknown, cannot be withheld again", () => {
    const ledger = finished(conversation(0), row(1));
    expect(withheld(ledger, 1, hash)).toEqual(ledger);
    expect(withheld(ledger, 8, hash)).toEqual(ledger);
    expect(withheld(withheld(conversation(0, 1), 1, hash), 1, hash)).toEqual(withheld(conversation(0, 1), 1, hash));
  });
});

test("[A10] what a checkpoint holds has no row that was not delivered", () => {
  const ledger = finished(finished(conversation(0, 1), row(2)), row(3));
  expect(deliveredOnly(ledger)).toEqual(conversation(0, 1));
  expect(deliveredOnly(conversation(0, 1))).toEqual(conversation(0, 1));
});

describe("the next turn", () => {
  test("is after every turn that has a response, delivered or not", () => {
    expect(nextTurn(emptyLedger)).toBe(0);
    expect(nextTurn(conversation(0, 1))).toBe(2);
    expect(nextTurn(conversation(3, 1))).toBe(4);
    expect(nextTurn(finished(conversation(0), row(1)))).toBe(2);
    expect(nextTurn(finished(conversation(0, 5), row(2)))).toBe(6);
  });

  test("is that of the withheld call's successor while it is held, and its own once it is left out", () => {
    const ledger = withheld(conversation(0, 1), 1, hash);
    expect(nextTurn(ledger)).toBe(2);
    expect(nextTurn(deliveredOnly(ledger))).toBe(1);
  });
});

describe("a call without a turn", () => {
  test("is known by its request, delivered or not", () => {
    const ledger = finished(conversation(0, 1), row(2));
    expect(recall(ledger, request(2))).toEqual(row(2));
    expect(recall(ledger, request(0))).toEqual(row(0));
    expect(recall(ledger, request(3))).toBeUndefined();
    expect(recall(emptyLedger, request(0))).toBeUndefined();
  });

  test("is known 64 calls back and no further", () => {
    const ledger = conversation(...Array.from({ length: 65 }, (_, turn) => turn));
    expect(recall(ledger, request(1))).toEqual(row(1));
    expect(recall(ledger, request(0))).toBeUndefined();
  });

  test("finds the latest of several with its request", () => {
    const same = { ...row(1), request: request(0) };
    expect(recall(delivered(finished(conversation(0), same), 1, hash), request(0))).toEqual(same);
    expect(recall(finished(finished(emptyLedger, row(0)), same), request(0))).toEqual(same);
  });
});

describe("the chain", () => {
  const base = delivered(finished(emptyLedger, row(0)), 0, hash);
  const chainAfter = (change: object) => delivered(finished(base, { ...row(1), ...change }), 1, hash).head?.chain;

  test.each([
    { turn: 1, request: request(9) },
    { response: { ...row(1).response, digest: request(9) } },
    { staging: null },
    { policyVersion: 9 },
    { promptTokens: 99 },
    { completionTokens: 99 },
  ])("differs where a call has %j", (change) => {
    expect(chainAfter(change)).not.toBe(chainAfter({}));
  });

  test("differs where an earlier call does", () => {
    const other = delivered(finished(emptyLedger, { ...row(0), staging: null }), 0, hash);
    expect(delivered(finished(other, row(1)), 1, hash).head?.chain).not.toBe(chainAfter({}));
  });

  test("does not differ with the attempt, nor with where the response's text rests", () => {
    const { digest, bytes } = row(1).response;
    expect(chainAfter({ attempt: 7 })).toBe(chainAfter({}));
    expect(chainAfter({ response: { digest, bytes } })).toBe(chainAfter({}));
  });

  test("is one digest, and starts from nothing", () => {
    expect(base.head?.chain).toMatch(/^[0-9a-f]{64}$/);
    expect(base.head).toMatchObject({ count: 1, highest: 0, parent: undefined });
  });
});

test("[F4] turn 10,000 takes as many digests, and as many rows looked at, as turn 10", () => {
  expect(costAt(10_000)).toEqual(costAt(10));
});

/** What one more call costs after `turns` of them. */
function costAt(turns: number): { readonly hashes: number; readonly looks: number } {
  const cost = { hashes: 0, looks: 0 };
  const ledger = watched(conversation(...Array.from({ length: turns }, (_, turn) => turn)), () => (cost.looks += 1));
  const counting = (text: string) => {
    cost.hashes += 1;
    return hash(text);
  };
  lookup(ledger, turns, request(turns));
  const after = delivered(finished(ledger, row(turns)), turns, counting);
  withheld(after, turns, counting);
  lookup(after, turns, request(turns));
  return cost;
}

/** The ledger, telling each time somebody walks on to a parent. */
function watched({ head, held }: Ledger, looked: () => void): Ledger {
  if (head === undefined) return { head, held };
  const { parent, ...rest } = head;
  const link = {
    ...rest,
    get parent() {
      looked();
      return parent;
    },
  };
  return { head: link, held };
}
