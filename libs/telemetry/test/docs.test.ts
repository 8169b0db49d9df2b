/** `docs/telemetry.md` lists what exists, and nothing else. */
import { controlMeasures, spanAttributes, spanKinds } from "@holdpoint/checkpoint";
import { processMeasures } from "@holdpoint/telemetry";
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

const page = readFileSync(new URL("../../../docs/telemetry.md", import.meta.url), "utf8");

/** The rows of the table whose first column has this head, cell by cell, without code marks. */
function rowsOf(head: string): readonly (readonly string[])[] {
  const lines = page.split("\n");
  const at = lines.findIndex((line) => new RegExp(`^\\| ${head} +\\|`).test(line));
  const rows = lines.slice(at + 2);
  const end = rows.findIndex((line) => !line.startsWith("|"));
  return rows.slice(0, end).map((line) =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim().replaceAll("`", "")),
  );
}

test("every metric is documented, with its kind and unit, and every documented metric exists", () => {
  const documented = rowsOf("metric").map(([name, kind, unit]) => ({ name, kind, unit }));
  const measures = Object.entries({ ...controlMeasures, ...processMeasures });
  expect(documented).toEqual(measures.map(([name, { kind, unit }]) => ({ name, kind, unit })));
});

test("every kind of span is documented, and every documented one exists", () => {
  expect(rowsOf("span").map(([name]) => name)).toEqual(spanKinds);
});

test("every attribute is documented, and every documented one exists", () => {
  expect(rowsOf("attribute").map(([name]) => name)).toEqual(spanAttributes);
});
