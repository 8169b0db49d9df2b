/** The tables of the report. */
import type { RunRecord } from "../demo/record.ts";
import { escaped } from "./escape.ts";
import type { RolloutRow } from "./summary.ts";

/** A cell: its text, and how it is set; numbers need nothing. */
type Cell = string | { readonly text: string; readonly kind: "text" | "code" | "good" | "bad" };

export function rolloutTable(rows: readonly RolloutRow[]): string {
  const head = [
    text("Rollout"),
    text("Files"),
    "Reward",
    "Calls",
    "Tools",
    "Attempts",
    "Again",
    "Charged",
    "Under chaos",
    "Parked",
    "Same",
  ];
  const body = rows.map((row): readonly Cell[] => [
    text(row.rollout),
    { text: row.treeDigest?.slice(0, 12) ?? "none", kind: "code" },
    row.reward?.toFixed(3) ?? "-",
    String(row.calls),
    String(row.tools),
    String(row.attempts),
    `${row.repeatedCalls} + ${row.repeatedTools}`,
    seconds(row.calmMs),
    seconds(row.chaosMs),
    seconds(row.parkedMs),
    row.differs.length === 0 ? { text: "yes", kind: "good" } : { text: row.differs.join(", "), kind: "bad" },
  ]);
  return table(head, body);
}

export function killTable({ kills, startedAtMs, missedKills }: RunRecord): string {
  if (kills.length === 0) return "<p>Nothing was killed.</p>";
  const head = [text("Killed"), "At", "After calls", "Planned after", "Back after", text("Activations that ran")];
  const body = kills.map(({ planned, atMs, calls, backAtMs, hit }): readonly Cell[] => [
    text(planned.victim),
    seconds(atMs - startedAtMs),
    String(calls),
    String(planned.afterCalls),
    `${backAtMs - atMs} ms`,
    text(hit.length === 0 ? "none" : hit.join(", ")),
  ]);
  const missed = missedKills.map(({ victim }) => `<p>The kill of ${victim} was not due before the end.</p>`);
  return table(head, body) + missed.join("");
}

export function checkpointTable({ checkpoints, restores, startedAtMs }: RunRecord): string {
  if (checkpoints.length === 0) return "<p>None was taken.</p>";
  const head = [text("Checkpoint"), "At", "Cut", "Episodes", "Restarts", "Held", "Durable after", text("Restored")];
  const body = checkpoints.map((checkpoint): readonly Cell[] => {
    const { checkpointId, openedAtMs, capturedAtMs, letGoAtMs, committedAtMs, scope, restarts, cut } = checkpoint;
    const uses = restores.filter(({ source, installedAtMs }) => source === checkpointId && installedAtMs !== null);
    return [
      text(checkpointId),
      seconds(openedAtMs - startedAtMs),
      cut === null ? "none" : String(cut),
      String(scope.length),
      String(restarts.length),
      between(openedAtMs, letGoAtMs),
      between(capturedAtMs, committedAtMs),
      text(uses.map((use) => `${use.checkpointId}: ${use.continued.length} continued`).join(", ")),
    ];
  });
  return table(head, body);
}

function table(head: readonly Cell[], body: readonly (readonly Cell[])[]): string {
  const rows = body.map((row) => `<tr>${row.map((cell) => cellOf("td", cell)).join("")}</tr>`);
  return `<div class="scroll"><table><tr>${head.map((cell) => cellOf("th", cell)).join("")}</tr>${rows.join("\n")}</table></div>`;
}

function cellOf(tag: "td" | "th", cell: Cell): string {
  if (typeof cell === "string") return `<${tag}>${escaped(cell)}</${tag}>`;
  return `<${tag} class="${cell.kind}">${escaped(cell.text)}</${tag}>`;
}

function text(of: string): Cell {
  return { text: of, kind: "text" };
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

function between(fromMs: number | null, toMs: number | null): string {
  return fromMs === null || toMs === null ? "-" : `${Math.round(toMs - fromMs)} ms`;
}
