/**
 * A run as lanes in SVG: one for each rollout, with its attempts, what was parked, and what was given up; over all of them the
 * checkpoints, the kills and the restores.
 */
import type { AttemptFacts } from "../demo/attempts.ts";
import type { CheckpointFacts, RestoreFacts } from "../demo/checkpoints.ts";
import type { KillFacts, RolloutRecord, RunRecord } from "../demo/record.ts";
import { escaped } from "./escape.ts";

const laneHeight = 20;
const barHeight = 12;
const labelWidth = 64;
const rowHeight = 13;
/** Of a kill's label, for each character. */
const letterWidth = 5.6;
const axisHeight = 22;
const width = 1080;
const plotWidth = width - labelWidth - 12;

interface Scale {
  /** Where an instant lies, in units of the drawing. */
  readonly x: (atMs: number) => number;
  readonly top: number;
  readonly bottom: number;
  readonly startMs: number;
  readonly lengthMs: number;
}

/** @param lengthMs that the width stands for: the same for all runs that are compared */
export function timelineOf(run: RunRecord, lengthMs: number): string {
  const startMs = run.startedAtMs;
  const x = (atMs: number) => round(labelWidth + ((atMs - startMs) / lengthMs) * plotWidth);
  const labels = labelRows(run.kills, x);
  const top = (Math.max(-1, ...labels) + 1) * rowHeight + 14;
  const bottom = top + run.rollouts.length * laneHeight;
  const scale: Scale = { x, top, bottom, startMs, lengthMs };
  return [
    `<svg class="timeline" viewBox="0 0 ${width} ${bottom + axisHeight}" role="img" aria-label="Timeline of the run ${escaped(run.name)}">`,
    axis(scale),
    ...run.checkpoints.map((checkpoint) => checkpointBand(checkpoint, scale)),
    ...run.restores.map((restore) => restoreBand(restore, scale)),
    ...run.rollouts.map((rollout, lane) => laneOf(rollout, run.checkpoints, { lane, scale })),
    ...run.kills.map((kill, at) => killLine(kill, labels[at] ?? 0, scale)),
    "</svg>",
  ].join("\n");
}

/** The row of each kill's label, so that none covers another. */
function labelRows(kills: readonly KillFacts[], x: Scale["x"]): readonly number[] {
  const ends: number[] = [];
  return kills.map(({ planned, atMs }) => {
    const half = (planned.victim.length * letterWidth) / 2 + 3;
    const free = ends.findIndex((end) => end <= x(atMs) - half);
    const row = free === -1 ? ends.length : free;
    ends[row] = x(atMs) + half;
    return row;
  });
}

function laneOf(
  { rollout, attempts }: RolloutRecord,
  checkpoints: readonly CheckpointFacts[],
  { lane, scale }: { readonly lane: number; readonly scale: Scale },
): string {
  const top = scale.top + lane * laneHeight;
  const y = top + (laneHeight - barHeight) / 2;
  const bars = attempts.map((attempt, at) => {
    const leftAtMs = cutOf(attempts[at + 1], attempt, checkpoints);
    return attemptBar({ rollout, attempt, leftAtMs }, { y, scale });
  });
  return [
    `<g><line class="rule" x1="${labelWidth}" y1="${top + laneHeight}" x2="${width}" y2="${top + laneHeight}"/>`,
    `<text class="label" x="${labelWidth - 8}" y="${top + laneHeight / 2 + 4}">${escaped(rollout)}</text>`,
    ...bars,
    "</g>",
  ].join("");
}

/** When the replacement left an attempt, where it goes on from it. */
function cutOf(
  next: AttemptFacts | undefined,
  { attempt }: AttemptFacts,
  checkpoints: readonly CheckpointFacts[],
): number | undefined {
  if (next?.from?.attempt !== attempt) return undefined;
  const { source } = next.from;
  return checkpoints.find(({ checkpointId }) => checkpointId === source)?.capturedAtMs ?? undefined;
}

interface Bar {
  readonly rollout: string;
  readonly attempt: AttemptFacts;
  readonly leftAtMs: number | undefined;
}

/** What counts is coloured: all of a last attempt, and of an earlier one the part up to the cut that was gone on from. */
function attemptBar({ rollout, attempt, leftAtMs }: Bar, { y, scale }: { y: number; scale: Scale }): string {
  const { openedAtMs, from, end } = attempt;
  const endMs = attempt.endedAtMs ?? scale.startMs + scale.lengthMs;
  const isLast = end !== "abandoned";
  const origin = from === null ? "from its input" : `goes on from ${from.source}`;
  const title = `${rollout}, attempt ${attempt.attempt}: ${origin}, ${end} after ${seconds(endMs - openedAtMs)}`;
  const place = { y, height: barHeight, scale };
  const countsUntilMs = isLast ? endMs : Math.min(leftAtMs ?? openedAtMs, endMs);
  const colour = `attempt a${Math.min(attempt.attempt, 3)}`;
  return [
    isLast ? "" : rect("abandoned", { fromMs: openedAtMs, toMs: endMs, ...place }, title),
    countsUntilMs > openedAtMs ? rect(colour, { fromMs: openedAtMs, toMs: countsUntilMs, ...place }, title) : "",
    ...attempt.parked.map((span) => rect("parked", { ...span, ...place }, "parked")),
  ].join("");
}

function checkpointBand(checkpoint: CheckpointFacts, scale: Scale): string {
  const { checkpointId, openedAtMs, capturedAtMs, letGoAtMs, committedAtMs, scope } = checkpoint;
  const toMs = letGoAtMs ?? committedAtMs ?? openedAtMs;
  const state = committedAtMs === null ? "never committed" : `holds ${scope.length} episodes`;
  const title = `${checkpointId}: ${state}, held for ${seconds(toMs - openedAtMs)}`;
  const place = { fromMs: openedAtMs, toMs, y: scale.top, height: scale.bottom - scale.top, scale };
  const x = scale.x(capturedAtMs ?? openedAtMs);
  const kind = committedAtMs === null ? "cut failed" : "cut";
  const mark = `<path class="${kind}" d="M${x} ${scale.top - 2}l-4 -7h8z"><title>${escaped(title)}</title></path>`;
  return rect("hold", place, title) + mark;
}

function restoreBand(restore: RestoreFacts, scale: Scale): string {
  const { checkpointId, source, startedAtMs, installedAtMs, continued } = restore;
  const state = installedAtMs === null ? "came to nothing" : `continued ${continued.length} rollouts`;
  const title = `${checkpointId}: restored ${source}, ${state}`;
  const toMs = installedAtMs ?? startedAtMs;
  return rect("restore", { fromMs: startedAtMs, toMs, y: scale.top, height: scale.bottom - scale.top, scale }, title);
}

function killLine({ planned, atMs, calls, hit }: KillFacts, row: number, scale: Scale): string {
  const { victim } = planned;
  const x = scale.x(atMs);
  const y = 11 + row * rowHeight;
  const title = `kill -9 of ${victim} after ${calls} calls, while ${hit.length} activations ran`;
  return [
    `<g class="kill${victim === "everything" ? " everything" : ""}"><title>${escaped(title)}</title>`,
    `<line x1="${x}" y1="${y + 3}" x2="${x}" y2="${scale.bottom}"/>`,
    `<text x="${x}" y="${y}">${escaped(victim)}</text></g>`,
  ].join("");
}

function axis({ x, top, bottom, startMs, lengthMs }: Scale): string {
  const stepMs =
    [1, 2, 5, 10, 20, 30, 60, 120].map((step) => step * 1000).find((step) => lengthMs / step <= 14) ?? 300_000;
  const ticks = Array.from({ length: Math.floor(lengthMs / stepMs) + 1 }, (_, tick) => tick * stepMs);
  return ticks
    .map((tick) => {
      const at = x(startMs + tick);
      return `<line class="tick" x1="${at}" y1="${top}" x2="${at}" y2="${bottom}"/><text class="tick" x="${at}" y="${bottom + 15}">${tick / 1000} s</text>`;
    })
    .join("");
}

interface Place {
  readonly fromMs: number;
  readonly toMs: number;
  readonly y: number;
  readonly height: number;
  readonly scale: Scale;
}

/** At least a hair wide, so that nothing is invisible. */
function rect(kind: string, { fromMs, toMs, y, height, scale }: Place, title: string): string {
  const from = scale.x(fromMs);
  const size = Math.max(0.8, round(scale.x(toMs) - from));
  return `<rect class="${kind}" x="${from}" y="${y}" width="${size}" height="${height}"><title>${escaped(title)}</title></rect>`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(2)} s`;
}
