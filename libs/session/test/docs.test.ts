import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { marks, withTable } from "../scripts/table.ts";

const path = join(import.meta.dirname, "../../../docs/sessions.md");

test("the table in the documentation is the machine's", () => {
  const written = readFileSync(path, "utf8");
  expect(withTable(written), "the machine has changed since docs/sessions.md was generated: run `npm run docs`").toBe(
    written,
  );
});

test("the table takes the place between its marks, and nothing else", () => {
  const filled = withTable(`before\n${marks.begin}\nold\n${marks.end}\nafter\n`);
  expect(filled).toMatch(/^before\n/);
  expect(filled).toMatch(/\nafter\n$/);
  expect(filled).not.toContain("old");
  expect(filled).toMatch(/\| `idle` +\| `activation.started` +\| `running` +\|/);
  expect(filled).toMatch(/\| `closed` +\| – +\| – +\|/);
  expect(filled).not.toContain("restart");
  expect(withTable(filled)).toBe(filled);
});

test("a document without a place for the table is refused", () => {
  for (const wrong of ["", marks.begin, `${marks.end} ${marks.begin}`])
    expect(() => withTable(wrong)).toThrow("expected the lines");
});
