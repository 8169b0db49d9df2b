import { emptyLedger, type Ledger, type LedgerEvent, ledgerKind, lineage } from "@holdpoint/ledger";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { hash, request, row } from "./rows.ts";

const kind = ledgerKind(hash);
const rollout = "r";

function started(turn: number, attempt = 0): LedgerEvent {
  return { type: "call.started", data: { rollout, attempt, turn, request: request(turn), policyVersion: 3 } };
}
function finished(turn: number, attempt = 0): LedgerEvent {
  return { type: "call.finished", data: { rollout, ...row(turn, attempt) } };
}
function delivered(turn: number, attempt = 0): LedgerEvent {
  return { type: "call.delivered", data: { rollout, attempt, turn } };
}
function withheld(turn: number, attempt = 0): LedgerEvent {
  return { type: "call.withheld", data: { rollout, attempt, turn } };
}

function after(ledger: Ledger, ...events: readonly LedgerEvent[]): Ledger {
  return events.reduce((state, event) => kind.evolve(state, event), ledger);
}

/** All that is said of the calls of these turns, each delivered. */
function calls(turns: readonly number[], attempt = 0): LedgerEvent[] {
  return turns.flatMap((turn) => [started(turn, attempt), finished(turn, attempt), delivered(turn, attempt)]);
}

describe("a session of the model server", () => {
  test("is opened by the first call of its episode, and by nothing else", () => {
    expect(kind.open(started(0))).toEqual(emptyLedger);
    expect(kind.open(finished(0))).toBeUndefined();
    expect(kind.open(delivered(0))).toBeUndefined();
    expect(kind.open({ type: "participant.left", data: {} })).toBeUndefined();
  });

  test("is not changed by a call that has only started, nor by what is about no call", () => {
    const ledger = after(emptyLedger, ...calls([0, 1]));
    expect(after(ledger, started(2), { type: "session.retired", data: { rollout, attempt: 0 } })).toEqual(ledger);
  });

  test("keeps of a call what the trainer and the caller need, and the attempt that made it", () => {
    expect(lineage(after(emptyLedger, ...calls([0], 2)))).toEqual([{ ...row(0, 2), parent: null }]);
  });
});

describe("what the model says of an episode's calls", () => {
  test("counts the delivered ones and names the latest response", () => {
    expect(kind.edges(emptyLedger)).toEqual({ calls: { received: 0, last: null } });
    const edges = kind.edges(after(emptyLedger, ...calls([0, 1])));
    expect(edges).toEqual({ calls: { received: 2, last: row(1).response.digest } });
  });

  test("[C15] leaves out a response that was not delivered, or was withheld", () => {
    const one = { calls: { received: 1, last: row(0).response.digest } };
    expect(kind.edges(after(emptyLedger, ...calls([0]), started(1), finished(1)))).toEqual(one);
    expect(kind.edges(after(emptyLedger, ...calls([0, 1]), withheld(1)))).toEqual(one);
  });
});

function sizeAfter(turns: number): number {
  const ledger = after(emptyLedger, ...calls(Array.from({ length: turns }, (_, turn) => turn)));
  return JSON.stringify(kind.summary(ledger)).length;
}

describe("the summary", () => {
  test("says how many calls there are, and their chain", () => {
    const ledger = after(emptyLedger, ...calls([0, 1]));
    expect(kind.summary(ledger)).toEqual({ calls: 2, chain: ledger.head?.chain, held: [] });
    expect(kind.summary(emptyLedger)).toEqual({ calls: 0, chain: null, held: [] });
  });

  test("tells a held response from none", () => {
    const held = [[0, request(0), row(0).response.digest]];
    expect(kind.summary(after(emptyLedger, finished(0)))).toEqual({ calls: 0, chain: null, held });
  });

  test("[F4] is as small after 10,000 calls as after 10", () => {
    expect(sizeAfter(10_000)).toBe(sizeAfter(10) + "10000".length - "10".length);
  });
});

/** The turns of the lineage, each with the one that it goes on from. */
function parentsIn(ledger: Ledger | undefined) {
  return ledger && lineage(ledger).map(({ turn, parent }) => [turn, parent]);
}

/** Any history in which each turn goes through its states in some order, with repeats and nonsense. */
const histories = fc.array(
  fc.tuple(fc.constantFrom(started, finished, delivered, withheld), fc.nat({ max: 7 })).map(([say, turn]) => say(turn)),
  { maxLength: 60 },
);

describe("for every history", () => {
  test("fixing is the same once and twice, and leaves exactly what was delivered", () => {
    fc.assert(
      fc.property(histories, (events) => {
        const ledger = after(emptyLedger, ...events);
        const fixed = kind.fix(ledger);
        expect(kind.fix(fixed)).toEqual(fixed);
        expect(fixed.held).toEqual([]);
        expect(lineage(fixed)).toEqual(lineage(ledger));
        expect(kind.edges(fixed)).toEqual(kind.edges(ledger));
      }),
    );
  });

  test("a turn is in the lineage or held, once, or has no response", () => {
    fc.assert(
      fc.property(histories, (events) => {
        const ledger = after(emptyLedger, ...events);
        const turns = [...lineage(ledger), ...ledger.held].map(({ turn }) => turn);
        const finishedTurns = new Set(events.filter(({ type }) => type === "call.finished").map(turnOf));
        expect(new Set(turns).size).toBe(turns.length);
        expect(new Set(turns)).toEqual(finishedTurns);
      }),
    );
  });

  test("the chain is that of the lineage alone, however it came about", () => {
    fc.assert(
      fc.property(histories, (events) => {
        const fixed = kind.fix(after(emptyLedger, ...events));
        const anew = after(emptyLedger, ...calls(lineage(fixed).map(({ turn }) => turn)));
        expect(kind.summary(anew)).toEqual(kind.summary(fixed));
        expect(anew.head).toEqual(fixed.head);
      }),
    );
  });

  test("[A8][A11] a replacement goes on from what was fixed as the original does, and twice as well as once", () => {
    fc.assert(
      fc.property(histories, histories, (before, later) => {
        const fixed = kind.fix(after(emptyLedger, ...before));
        const original = after(fixed, ...later);
        const [first, second] = [1, 2].map((attempt) =>
          after(fixed, ...later.map((event) => inAttempt(event, attempt))),
        );
        expect(first && kind.summary(first)).toEqual(kind.summary(original));
        expect(second && kind.summary(second)).toEqual(kind.summary(original));
        expect(parentsIn(first)).toEqual(parentsIn(original));
      }),
    );
  });

  test("a different lineage has a different chain", () => {
    fc.assert(
      fc.property(histories, histories, (one, other) => {
        const [a, b] = [one, other].map((events) => after(emptyLedger, ...events));
        const isSame = JSON.stringify(parentsIn(a)) === JSON.stringify(parentsIn(b));
        expect(a?.head?.chain === b?.head?.chain).toBe(isSame);
      }),
    );
  });
});

function turnOf({ data }: LedgerEvent): number {
  return "turn" in data ? data.turn : -1;
}

function inAttempt(event: LedgerEvent, attempt: number): LedgerEvent {
  return event.type === "call.finished" ? { ...event, data: { ...event.data, attempt } } : event;
}
