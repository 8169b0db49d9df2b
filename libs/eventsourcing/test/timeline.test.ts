/** Timelines as paths [L6]. */
import { type Branch, countsOn, pathTo } from "@holdpoint/eventsourcing";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";

const end = Number.POSITIVE_INFINITY;

/** Attempt 1 left 0 at 10, 2 left 1 at 20, 3 left 1 at 15, 4 left 0 at 5. */
const tree: readonly Branch[] = [
  { attempt: 0 },
  { attempt: 1, from: { attempt: 0, cut: 10 } },
  { attempt: 2, from: { attempt: 1, cut: 20 } },
  { attempt: 3, from: { attempt: 1, cut: 15 } },
  { attempt: 4, from: { attempt: 0, cut: 5 } },
];

describe("[L6] the path to an attempt", () => {
  test("that started from its input is itself, without an end", () => {
    expect(pathTo(tree, 0)).toEqual([{ attempt: 0, upTo: end }]);
    expect(pathTo([], 3)).toEqual([{ attempt: 3, upTo: end }]);
  });

  test("that was restored goes through each ancestor up to where its child left it", () => {
    expect(pathTo(tree, 2)).toEqual([
      { attempt: 0, upTo: 10 },
      { attempt: 1, upTo: 20 },
      { attempt: 2, upTo: end },
    ]);
  });

  test("passes over restores of the same checkpoint, and of earlier ones, that it does not go on from", () => {
    expect(pathTo(tree, 3).map(({ attempt }) => attempt)).toEqual([0, 1, 3]);
    expect(pathTo(tree, 4)).toEqual([
      { attempt: 0, upTo: 5 },
      { attempt: 4, upTo: end },
    ]);
  });

  test("never takes more of an ancestor than its child had when it was left", () => {
    const branches = [
      { attempt: 1, from: { attempt: 0, cut: 30 } },
      { attempt: 2, from: { attempt: 1, cut: 20 } },
    ];
    expect(pathTo(branches, 2)[0]).toEqual({ attempt: 0, upTo: 20 });
  });

  test("ends where a branch claims to go on from itself, or from an attempt after it", () => {
    expect(pathTo([{ attempt: 1, from: { attempt: 1, cut: 9 } }], 1)).toEqual([{ attempt: 1, upTo: end }]);
    const circle = [
      { attempt: 1, from: { attempt: 2, cut: 9 } },
      { attempt: 2, from: { attempt: 1, cut: 9 } },
    ];
    expect(pathTo(circle, 2).map(({ attempt }) => attempt)).toEqual([1, 2]);
  });
});

describe("[L6] an event counts", () => {
  test("up to and with the cut at which its attempt was left, and not after it", () => {
    const path = pathTo(tree, 2);
    expect(countsOn(path, 0, 10)).toBe(true);
    expect(countsOn(path, 0, 11)).toBe(false);
    expect(countsOn(path, 1, 20)).toBe(true);
    expect(countsOn(path, 1, 21)).toBe(false);
    expect(countsOn(path, 2, 1_000)).toBe(true);
  });

  test("never on a path that its attempt is not part of", () => {
    for (const attempt of [3, 4, 5]) expect(countsOn(pathTo(tree, 2), attempt, 1)).toBe(false);
  });
});

/** Something that happened to one rollout: an event of a live attempt, or a restore that leaves `from` at an earlier sequence. */
type Happening =
  | { readonly kind: "event"; readonly pick: number }
  | { readonly kind: "restore"; readonly pick: number; readonly back: number };

interface Told {
  readonly branches: readonly Branch[];
  readonly said: readonly { readonly attempt: number; readonly sequence: number }[];
}

/** The log that these happenings leave: one sequence each. */
function told(happenings: readonly Happening[]): Told {
  const branches: Branch[] = [{ attempt: 0 }];
  const said: { attempt: number; sequence: number }[] = [];
  for (const [index, happening] of happenings.entries()) {
    const sequence = index + 1;
    const attempt = happening.pick % branches.length;
    if (happening.kind === "event") said.push({ attempt, sequence });
    else
      branches.push({ attempt: branches.length, from: { attempt, cut: Math.max(0, sequence - 1 - happening.back) } });
  }
  return { branches, said };
}

/** The history by its definition: what the attempt said, after what its parent's history held up to the cut. */
function history({ branches, said }: Told, attempt: number): readonly number[] {
  const own = said.filter((event) => event.attempt === attempt).map(({ sequence }) => sequence);
  const from = branches.find((branch) => branch.attempt === attempt)?.from;
  if (from === undefined) return own;
  const inherited = history({ branches, said }, from.attempt).filter((sequence) => sequence <= from.cut);
  return [...inherited, ...own].toSorted((one, other) => one - other);
}

const happening: fc.Arbitrary<Happening> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("event" as const), pick: fc.nat(20) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("restore" as const), pick: fc.nat(20), back: fc.nat(10) }) },
);

test("[L6] whatever was restored from what, the events that count on the path of an attempt are its history", () => {
  fc.assert(
    fc.property(fc.array(happening, { maxLength: 60 }), (happenings) => {
      const log = told(happenings);
      for (const { attempt } of log.branches) {
        const path = pathTo(log.branches, attempt);
        const counting = log.said.filter((event) => countsOn(path, event.attempt, event.sequence));
        expect(counting.map(({ sequence }) => sequence)).toEqual(history(log, attempt));
      }
    }),
  );
});

test("[L6] what an attempt says after it was left counts for itself alone", () => {
  fc.assert(
    fc.property(fc.array(happening, { maxLength: 40 }), fc.nat(20), (happenings, pick) => {
      const { branches } = told(happenings);
      const attempt = pick % branches.length;
      const later = happenings.length + 1;
      const counting = branches.filter((branch) => countsOn(pathTo(branches, branch.attempt), attempt, later));
      expect(counting.map((branch) => branch.attempt)).toEqual([attempt]);
    }),
  );
});
