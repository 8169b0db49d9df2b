import { marksOf, withTable } from "@holdpoint/testing";
import { expect, test } from "vitest";

const { begin, end } = marksOf("a.ts");
const table = [
  ["state", "next"],
  ["one", "the second"],
];

test("a table takes the place between its marks, aligned, and nothing else", () => {
  const filled = withTable(`before\n${begin}\nold\n${end}\nafter\n${marksOf("b.ts").begin}\n${end}\n`, "a.ts", table);
  expect(filled).toBe(
    `before\n${begin}\n\n| state | next       |\n| ----- | ---------- |\n| one   | the second |\n\n${end}\nafter\n` +
      `${marksOf("b.ts").begin}\n${end}\n`,
  );
  expect(withTable(filled, "a.ts", table)).toBe(filled);
});

test("a document without a place for it is refused", () => {
  for (const wrong of ["", begin, `${end} ${begin}`]) {
    expect(() => withTable(wrong, "a.ts", table)).toThrow("expected the lines");
  }
});
