import { flip, flipOf, packages, type Site, siteKinds, sites } from "@holdpoint/repair";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { sourceOf } from "./workbench.ts";

/** Kind and column of every site of a source of one line. */
function found(source: string): readonly string[] {
  return sites(source).map((site) => `${site.position} ${site.kind}`);
}

/** The site that a flip leaves, which takes it back. */
function backFrom(source: string, site: Site): Site | undefined {
  return sites(flip(source, site)).find(({ position }) => position === site.position);
}

describe("kinds of sites", () => {
  test("come in pairs that take each other back", () => {
    for (const kind of siteKinds) {
      const { found: before, replacement } = flipOf(kind);
      expect(before).not.toBe(replacement);
      expect(siteKinds).toContain(`${replacement} to ${before}`);
    }
    expect(new Set(siteKinds.map((kind) => flipOf(kind).found)).size).toBe(siteKinds.length);
  });

  test("are a closed set in an order that saved weights rely on", () => {
    expect(siteKinds.join(", ")).toMatchInlineSnapshot(
      `"|| to &&, && to ||, !== to ===, === to !==, ! to !!, !! to !, false to true, true to false, - to +, + to -, 0 to 1, 1 to 0, >= to <, < to >=, <= to >, > to <=, -- to ++, ++ to --, -= to +=, += to -=, != to ==, == to !=, / to *, * to /"`,
    );
  });
});

describe("the sites of a source", () => {
  test.each([
    ["a === b", "2 === to !=="],
    ["a !== b", "2 !== to ==="],
    ["a == b", "2 == to !="],
    ["a != b", "2 != to =="],
    ["a < b", "2 < to >="],
    ["a >= b", "2 >= to <"],
    ["a > b", "2 > to <="],
    ["a <= b", "2 <= to >"],
    ["a && b", "2 && to ||"],
    ["a || b", "2 || to &&"],
    ["a + b", "2 + to -"],
    ["a - b", "2 - to +"],
    ["a * b", "2 * to /"],
    ["a / b", "2 / to *"],
    ["a += b", "2 += to -="],
    ["a -= b", "2 -= to +="],
    ["a++", "1 ++ to --"],
    ["a--", "1 -- to ++"],
    ["++a", "0 ++ to --"],
    ["--a", "0 -- to ++"],
    ["!a", "0 ! to !!"],
    ["!!a", "0 !! to !"],
    ["true", "0 true to false"],
    ["false", "0 false to true"],
    ["0", "0 0 to 1"],
    ["1", "0 1 to 0"],
  ])("%s: %s", (source, expected) => {
    expect(found(source)).toEqual([expected]);
  });

  test.each([
    [
      "no operator of ours",
      "a % b; a ** b; a & b; a | b; a ^ b; a << b; a in b; a ?? b; -a; +a; ~a; typeof a; a *= b; a = b",
    ],
    ["a name like a literal", "a.true; a.b.false; ({ true: a, false: b })"],
    ["other numbers", "10; 0.5; 1.0; 0x1; 1e3; 01; 0n"],
    ["a string", "\"a === b && true ? 1 : 0\"; '!a'"],
    ["a template's text", "`a === b`"],
    ["a regular expression", "/a === 0|1 && true/g"],
    ["a comment", "// a === b\n/* a && b */ a"],
    ["a third negation", "!!!a"],
    ["an operator beside another, where a flip could join them", "a+-b; a-+b; a*/b/; a</b/"],
    ["nothing", ""],
  ])("are none in %s", (_, source) => {
    expect(found(source)).toEqual([]);
  });

  test("are found in what a template computes, past comments and parentheses, and in every nook", () => {
    expect(found("`x${a === b}`")).toEqual(["6 === to !=="]);
    expect(found("(a /* == */ ) // &&\n || (b)")).toEqual(["21 || to &&"]);
    expect(found("((a)) === ((b))")).toEqual(["6 === to !=="]);
    expect(found("f(function () { return [{ k: a && 1 }]; })")).toEqual(["31 && to ||", "34 1 to 0"]);
    expect(found("a ? true : 0")).toEqual(["4 true to false", "11 0 to 1"]);
    expect(found("! !a")).toEqual(["0 ! to !!", "2 ! to !!"]);
    expect(found("a / b / c")).toEqual(["2 / to *", "6 / to *"]);
    expect(found("a<!b")).toEqual(["2 ! to !!"]);
    expect(found("a-(+b)")).toEqual(["1 - to +"]);
    expect(found("a+b")).toEqual(["1 + to -"]);
    expect(found("return 1")).toEqual(["7 1 to 0"]);
    expect(found("#!/usr/bin/env node\n1")).toEqual(["20 1 to 0"]);
  });

  test("come by position, with lines that count from 1", () => {
    expect(sites("a && 1;\r\n\nif (!b) { c++; }")).toEqual([
      { position: 2, line: 1, kind: "&& to ||" },
      { position: 5, line: 1, kind: "1 to 0" },
      { position: 14, line: 3, kind: "! to !!" },
      { position: 21, line: 3, kind: "++ to --" },
    ]);
    expect(sites("(a + (b && c)) === d").map(({ position }) => position)).toEqual([3, 8, 15]);
  });

  test("are none where the source cannot be parsed", () => {
    expect(sites("a === ")).toEqual([]);
    expect(sites("import a from 'a'")).toEqual([]);
  });
});

describe("a flip", () => {
  test("changes the operator and nothing else", () => {
    expect(flip("x = a < b;", { position: 6, kind: "< to >=" })).toBe("x = a >= b;");
    expect(flip("x = !!a;", { position: 4, kind: "!! to !" })).toBe("x = !a;");
  });

  test.each(packages)("of any site of $name is a site, and flipped again gives the source back", ({ name }) => {
    const source = sourceOf(name);
    const all = sites(source);
    expect(all.length).toBeGreaterThan(5);
    for (const site of all) {
      const flipped = flip(source, site);
      const back = backFrom(source, site);
      expect(flipped).not.toBe(source);
      expect(flipped.split("\n")).toHaveLength(source.split("\n").length);
      expect(back === undefined ? undefined : flip(flipped, back)).toBe(source);
    }
  });

  test("is taken back by another, whatever the expression", () => {
    const operators = siteKinds.map((kind) => flipOf(kind).found).filter((text) => /^[-+*/<>=!&|]+$/.test(text));
    const infix = operators.filter((text) => !["!", "!!", "++", "--", "+=", "-="].includes(text));
    const { expression } = fc.letrec<{ expression: string }>((tie) => ({
      expression: fc.oneof(
        { maxDepth: 4 },
        fc.constantFrom("a", "b.c", "0", "1", "true", "false", "'s === t'", "/x && y/", "`t`", "d++", "--e"),
        fc
          .tuple(
            tie("expression"),
            fc.constantFrom(...infix),
            tie("expression"),
            fc.constantFrom("", " ", "/* + */", "\n"),
          )
          .map(([left, operator, right, gap]) => `${left}${gap} ${operator} ${gap}${right}`),
        tie("expression").map((inner) => `(${inner})`),
        tie("expression").map((inner) => `!${inner}`),
        fc.tuple(tie("expression"), tie("expression")).map(([left, right]) => `(${left})-(${right})`),
      ),
    }));
    fc.assert(
      fc.property(expression, (source) => {
        for (const site of sites(source)) {
          const back = backFrom(source, site);
          expect(back === undefined ? undefined : flip(flip(source, site), back)).toBe(source);
        }
      }),
    );
  });
});
