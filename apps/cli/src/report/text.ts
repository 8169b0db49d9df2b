/** The result of a demo as text for a terminal. */
import type { Numbers, RolloutRow, Spread, Summary } from "./summary.ts";

/** Most faults of one check that are printed; the report has them all. */
const maxFaults = 8;

export function textOf(summary: Summary): string {
  const { checks, rows, numbers, equal } = summary;
  const parts = [
    tableOf(rows),
    checks
      .map(({ claim, faults }) => [`${faults.length === 0 ? "  ok " : "  NO "} ${claim}`, ...faultLines(faults)])
      .flat(),
    numberLines(numbers, summary.level),
    [
      "what equality needs: a deterministic policy, its draws seeded by run, rollout and turn and never by the attempt,",
      "its version pinned for each group",
    ],
    [equal ? "EQUAL: the run under chaos ended as the one without." : "NOT EQUAL: see above."],
  ];
  return `${parts.map((lines) => lines.join("\n")).join("\n\n")}\n`;
}

function faultLines(faults: readonly string[]): readonly string[] {
  const more = faults.length > maxFaults ? [`       and ${faults.length - maxFaults} more`] : [];
  return [...faults.slice(0, maxFaults).map((fault) => `       ${fault}`), ...more];
}

function tableOf(rows: readonly RolloutRow[]): readonly string[] {
  const head = ["rollout", "tree", "reward", "calls", "tools", "attempts", "again", "charged", "under chaos", "same"];
  const cells = rows.map((row) => [
    row.rollout,
    row.treeDigest?.slice(0, 10) ?? "-",
    row.reward?.toFixed(3) ?? "-",
    String(row.calls),
    String(row.tools),
    String(row.attempts),
    `${row.repeatedCalls}+${row.repeatedTools}`,
    seconds(row.calmMs),
    seconds(row.chaosMs),
    row.differs.length === 0 ? "yes" : `NO: ${row.differs.join(", ")}`,
  ]);
  const widths = head.map((name, column) => Math.max(name.length, ...cells.map((row) => row[column]?.length ?? 0)));
  const isText = (column: number) => column < 2 || column === head.length - 1;
  return [head, ...cells].map((row) =>
    row
      .map((cell, column) => (isText(column) ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join("  ")
      .trimEnd(),
  );
}

function numberLines(numbers: Numbers, level: Summary["level"]): readonly string[] {
  const { kills, hits, checkpoints, restores, continued, restarted, hold, lag } = numbers;
  const chaos = level === "none" ? [] : [`${kills} kills, ${hits} of them while activations ran`];
  return [
    ...chaos,
    `${checkpoints} checkpoints: held ${spread(hold)}, durable after another ${spread(lag)}`,
    `${restores} restores: ${continued} rollouts continued, ${restarted} that no checkpoint held started over`,
    `repeated since the last cut, and never a committed step: ${numbers.repeatedCalls} model calls beside ${numbers.calls}, ` +
      `${numbers.repeatedTools} executions beside ${numbers.executions}`,
  ];
}

function spread(of: Spread | null): string {
  return of === null ? "-" : `${Math.round(of.medianMs)} ms (at most ${Math.round(of.maxMs)} ms)`;
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
