import { expect, test } from "vitest";
import { consequenceOf } from "../src/run/keeping.ts";

test.each([
  ["own", 0, "start again"],
  ["own", 1, "start again"],
  ["own", null, "start again"],
  ["own", 2, "give up"],
  ["own", 3, "leave"],
  ["killed", null, "none"],
  ["stopped", 0, "none"],
  ["stopped", 3, "none"],
] as const)("a process that ends (%s) with code %s: %s", (cause, code, consequence) => {
  expect(consequenceOf({ cause, code }, true)).toBe(consequence);
});

test("a process that fails before everybody has served is not started again", () => {
  expect(consequenceOf({ cause: "own", code: 1 }, false)).toBe("give up");
  expect(consequenceOf({ cause: "own", code: null }, false)).toBe("start again");
});
