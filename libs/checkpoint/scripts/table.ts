/** The tables of phases and operations, as they stand in the documentation. */
import { operationTable, phaseTable } from "@holdpoint/checkpoint";
import { Phase } from "@holdpoint/schemas";
import { withTable } from "@holdpoint/testing";

function moves(): readonly (readonly string[])[] {
  return [...phaseTable()].flatMap(([from, row]) =>
    [...row].filter(([, to]) => to !== from).map(([event, to]) => [from, event, to].map(code)),
  );
}

function operations(): readonly (readonly string[])[] {
  return [...operationTable()].map(([operation, row]) => [
    code(operation),
    ...Phase.options.map((phase) => outcome(phase, row.get(phase))),
  ]);
}

function outcome(phase: Phase, next: Phase | undefined): string {
  if (next === undefined) return "–";
  return next === phase ? "obeyed" : `→ ${next}`;
}

function code(text: string): string {
  return `\`${text}\``;
}

/** `document` with the tables put in their places. @throws where their marks are missing */
export function withPhaseTables(document: string): string {
  const phases = [["phase", "event", "next phase"], ...moves()];
  const allowed = [["operation", ...Phase.options.map(code)], ...operations()];
  return withTable(
    withTable(document, "libs/checkpoint/src/machine.ts", phases),
    "libs/checkpoint/src/operation-table.ts",
    allowed,
  );
}
