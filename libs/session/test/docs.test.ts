import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { withSessionTable } from "../scripts/table.ts";

const path = join(import.meta.dirname, "../../../docs/sessions.md");

test("the table in the documentation is the machine's", () => {
  const written = readFileSync(path, "utf8");
  expect(withSessionTable(written), "the machine has changed since: run `npm run docs`").toBe(written);
  expect(written).toMatch(/\| `idle` +\| `activation.started` +\| `running` +\|/);
  expect(written).toMatch(/\| `closed` +\| – +\| – +\|/);
});
