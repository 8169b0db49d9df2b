/** The result of a demo as one page that needs nothing else. */
import type { Check } from "../demo/compare.ts";
import { escaped } from "./escape.ts";
import { needs } from "./needs.ts";
import { style } from "./style.ts";
import type { RolloutRow, Spread, Summary } from "./summary.ts";
import { checkpointTable, killTable, rolloutTable } from "./tables.ts";
import { timelineOf } from "./timeline.ts";

export function htmlOf(summary: Summary): string {
  const { calm, chaos, equal } = summary;
  const lengthMs = Math.max(...[calm, chaos].map(({ startedAtMs, endedAtMs }) => endedAtMs - startedAtMs));
  const title = `Holdpoint demo: ${equal ? "equal" : "not equal"}`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<style>${style}</style>
</head>
<body>
<main>
<h1>Holdpoint demo</h1>
${verdict(summary)}
${cards(summary)}
<h2>Under chaos</h2>
<div class="scroll figure">${timelineOf(chaos, lengthMs)}</div>
${legend}
<h2>Uninterrupted, on the same scale</h2>
<div class="scroll figure">${timelineOf(calm, lengthMs)}</div>
<h2>What was compared</h2>
<ul class="checks">${summary.checks.map(check).join("\n")}</ul>
<h2>Rollouts</h2>
${rolloutTable(summary.rows)}
<p class="soft">Again: model calls and executions that were done again or given up since the last cut. None of them counts,
and no committed step is among them. Charged: of the time budget, uninterrupted and under chaos.</p>
<h2>Kills</h2>
${killTable(chaos)}
<h2>Checkpoints</h2>
${checkpointTable(chaos)}
<h2>What equality needs</h2>
${needs.map((sentence) => `<p>${escaped(sentence)}</p>`).join("\n")}
</main>
</body>
</html>
`;
}

const legend = `<ul class="legend">
<li><i style="background:var(--a0)"></i>first attempt</li>
<li><i style="background:var(--a1)"></i>replacement, continued or started over</li>
<li><i style="background:var(--abandoned)"></i>given up after the cut that the replacement goes on from</li>
<li><i style="background:var(--hold)"></i>admission closed for a checkpoint; the triangle is its cut</li>
<li><i style="background:var(--restore)"></i>restore</li>
<li><i style="background:var(--kill)"></i>kill -9</li>
</ul>`;

function verdict({ equal, level, seed, rows, chaos, numbers }: Summary): string {
  const crashes = chaos.kills.filter(({ planned }) => planned.victim === "everything").length;
  const story =
    level === "none"
      ? `${rows.length} rollouts, seed ${seed}, ran twice: undisturbed, and with ${numbers.checkpoints} checkpoints.`
      : `${rows.length} rollouts, seed ${seed}, ran twice: undisturbed, and through ${numbers.kills} kills, ${crashes} of them of everything at once.`;
  const kind = equal ? "good" : "bad";
  const word = equal ? "Both runs ended the same." : "The runs did not end the same.";
  return `<div class="verdict ${kind}"><strong>${word}</strong>${story}</div>`;
}

function cards({ numbers, rows }: Summary): string {
  const same = rows.filter(({ differs }) => differs.length === 0).length;
  const all: readonly (readonly [string, string])[] = [
    [`${same} of ${rows.length}`, "rollouts equal"],
    [`${numbers.kills}`, `kills, ${numbers.hits} into running work`],
    [`${numbers.checkpoints}`, "checkpoints"],
    [ms(numbers.hold, "medianMs"), `held for a checkpoint, at most ${ms(numbers.hold, "maxMs")}`],
    [`${numbers.continued}`, `continued, ${numbers.restarted} unheld started over`],
    [`${numbers.repeatedCalls}`, `calls again, beside ${numbers.calls}`],
    [`${numbers.repeatedTools}`, `executions again, beside ${numbers.executions}`],
    [`${repeatedSteps(rows)}`, "rollouts that repeated a committed step"],
  ];
  return `<div class="cards">${all.map(([value, name]) => `<div class="card"><b>${value}</b>${name}</div>`).join("")}</div>`;
}

function repeatedSteps(rows: readonly RolloutRow[]): number {
  return rows.filter(({ differs }) => differs.includes("once")).length;
}

function check({ claim, faults }: Check): string {
  if (faults.length === 0) return `<li>${escaped(claim)}</li>`;
  return `<li class="bad">${escaped(claim)}<ul>${faults.map((fault) => `<li>${escaped(fault)}</li>`).join("")}</ul></li>`;
}

function ms(of: Spread | null, which: keyof Spread): string {
  return of === null ? "-" : `${Math.round(of[which])} ms`;
}
