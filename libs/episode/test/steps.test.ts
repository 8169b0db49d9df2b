/** The steps of an episode, row by row of the protocol's table. */
import { joinTerms, nextStep, restartOf, silentTerms } from "@holdpoint/episode";
import { type SeedTerms, type Stage, stages } from "@holdpoint/schemas";
import { describe, expect, test } from "vitest";

type Bookmark = Stage | "none";

const bookmarks: readonly Bookmark[] = ["none", ...stages];

/** Terms by what they mean for a restore. */
const terms = {
  "nothing said": null,
  "direct tools only": silentTerms,
  "a sandbox lent": { ...silentTerms, sandboxLent: true },
  "grants bound, agent re-binds": { ...silentTerms, grantsBound: true, rebinds: true },
  "a sandbox lent and grants bound": { verify: "wait", rebinds: true, sandboxLent: true, grantsBound: true },
} as const satisfies Record<string, SeedTerms | null>;

type Named = keyof typeof terms;

const named: readonly Named[] = [
  "nothing said",
  "direct tools only",
  "a sandbox lent",
  "grants bound, agent re-binds",
  "a sandbox lent and grants bound",
];
const binding: readonly Named[] = ["a sandbox lent", "grants bound, agent re-binds", "a sandbox lent and grants bound"];

describe("the step after a bookmark", () => {
  test.each([
    { stage: "none", step: "seed", mode: "replay" },
    { stage: "seed", step: "seed", mode: "replay" },
    { stage: "invoke_agent", step: "invoke_agent", mode: "replay" },
    { stage: "close_agent", step: "close_agent", mode: "wait" },
    { stage: "verify", step: "verify", mode: "wait" },
    { stage: "return", step: "return", mode: "replay" },
  ] as const)(
    "$stage is $step, in the mode $mode, and seeds nobody again unless it was restored",
    ({ stage, step, mode }) => {
      for (const name of named) {
        expect(nextStep({ stage, terms: terms[name], isReplacement: false })).toEqual({
          stage: step,
          mode,
          reseeds: false,
        });
      }
    },
  );

  test("is verify as the resources server declared it, and the other steps do not heed that", () => {
    const declared = { ...silentTerms, verify: "replay" } as const;
    const modes = bookmarks.map((stage) => nextStep({ stage, terms: declared, isReplacement: false }).mode);
    expect(modes).toEqual(["replay", "replay", "replay", "wait", "replay", "replay"]);
  });
});

describe("[S2] a restore", () => {
  test.each(binding)("at invoke_agent or close_agent seeds again, where there is %s", (name) => {
    for (const stage of ["invoke_agent", "close_agent"] as const) {
      expect(nextStep({ stage, terms: terms[name], isReplacement: true })).toMatchObject({ stage, reseeds: true });
    }
  });

  test.each(["nothing said", "direct tools only"] as const)("seeds nobody again where there is %s", (name) => {
    for (const stage of bookmarks) {
      expect(nextStep({ stage, terms: terms[name], isReplacement: true }).reseeds).toBe(false);
    }
  });

  test("at verify or return seeds nobody again, whatever was lent", () => {
    for (const name of named) {
      for (const stage of ["verify", "return"] as const) {
        expect(nextStep({ stage, terms: terms[name], isReplacement: true })).toMatchObject({ stage, reseeds: false });
      }
    }
  });

  test("before the activation runs both seeds as the first time", () => {
    for (const stage of ["none", "seed"] as const) {
      const step = nextStep({ stage, terms: null, isReplacement: true });
      expect(step).toEqual({ stage: "seed", mode: "replay", reseeds: false });
    }
  });

  test("[S20] at return takes no other step: a finished verify is not repeated", () => {
    for (const name of named)
      expect(nextStep({ stage: "return", terms: terms[name], isReplacement: true }).stage).toBe("return");
  });

  test("takes its step in the mode that it had before", () => {
    for (const stage of bookmarks) {
      for (const name of named) {
        const [before, after] = [false, true].map((isReplacement) =>
          nextStep({ stage, terms: terms[name], isReplacement }),
        );
        expect(after?.mode).toBe(before?.mode);
      }
    }
  });
});

describe("the terms of both seeds", () => {
  test("are those of a class that says nothing, where neither says anything", () => {
    expect(joinTerms({}, {})).toEqual({ verify: "wait", rebinds: false, sandboxLent: false, grantsBound: false });
    expect(silentTerms).toEqual(joinTerms({}, {}));
  });

  test("take from the resources server how verify is treated and what it lends, and from the agent whether it re-binds", () => {
    const all = { verify: "replay", rebinds: true, sandboxLent: true, grantsBound: false } as const;
    expect(joinTerms(all, {})).toEqual({ verify: "replay", rebinds: false, sandboxLent: true, grantsBound: false });
    expect(joinTerms({}, all)).toEqual({ verify: "wait", rebinds: true, sandboxLent: false, grantsBound: false });
  });

  test("have bound grants where either has", () => {
    const bound = { grantsBound: true };
    const free = { grantsBound: false };
    expect(joinTerms(bound, free).grantsBound).toBe(true);
    expect(joinTerms(free, bound).grantsBound).toBe(true);
    expect(joinTerms(free, free).grantsBound).toBe(false);
    expect(joinTerms({ grantsBound: undefined }, bound).grantsBound).toBe(true);
  });
});

describe("[S2] an episode is a restart", () => {
  test("where its grants are bound and its agent does not re-bind, and the reason is given", () => {
    expect(restartOf({ ...silentTerms, grantsBound: true })).toBe(
      "its grants are bound to the attempt, and its agent does not re-bind",
    );
  });

  test("in no other case", () => {
    const others = [silentTerms, { ...silentTerms, rebinds: true }, { ...silentTerms, sandboxLent: true }];
    for (const other of others) expect(restartOf(other)).toBeUndefined();
    expect(restartOf({ ...silentTerms, grantsBound: true, rebinds: true })).toBeUndefined();
  });
});
