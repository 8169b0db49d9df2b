/** The table of the session machine, as it stands in the documentation. */
import { sessionTable } from "@holdpoint/session";
import { withTable } from "@holdpoint/testing";

const order = ["idle", "running", "at_boundary", "parked", "closed"];

/** Rows of the table of sessions that can be captured; those of a restart session lead to the same states. */
function rows(): readonly (readonly string[])[] {
  const table = sessionTable();
  return order.flatMap((state) => {
    const moves = [...(table.get(state) ?? [])].filter(([type, next]) => next !== state && !isMark(type));
    const sorted = moves.toSorted(([one], [other]) => (one < other ? -1 : 1));
    return sorted.length === 0 ? [[code(state), "–", "–"]] : sorted.map((move) => [state, ...move].map(code));
  });
}

function isMark(type: string): boolean {
  return type === "session.restart_marked";
}

function code(text: string): string {
  return `\`${text}\``;
}

/** `document` with the table put in its place. @throws where its marks are missing */
export function withSessionTable(document: string): string {
  return withTable(document, "libs/session/src/machine.ts", [["state", "event", "next state"], ...rows()]);
}
