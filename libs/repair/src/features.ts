/** What the softmax policy sees of a candidate: one number per feature, each in 0..1, in a fixed order. */
import { flip, type Site, siteKinds, sites } from "./sites.ts";
import type { Task } from "./task.ts";
import { type ReadReport, wordsOf } from "./test-report.ts";
import type { LineEdit } from "./tools.ts";

/** Names of the features, in the order of weights and gradients. Append-only: saved weights are read by position. */
export const featureNames = [
  ...siteKinds.map((kind) => `kind: ${kind}`),
  "inside the hinted lines",
  "nearness to their middle",
  "line named by a stack trace",
  "line shares a word with a failed test",
] as const;

export interface Candidate {
  readonly site: Site;
  /** What trying it asks of `edit_file`, on the file as it was first read. */
  readonly edit: LineEdit;
  readonly features: readonly number[];
}

export interface Evidence {
  /** The file as it was first read. */
  readonly source: string;
  readonly hint: Task["hint"];
  /** From before any edit; `undefined` where the tests were not run. */
  readonly report: ReadReport | undefined;
}

/** Every flip that could be the repair, by position. */
export function candidatesOf(evidence: Evidence): readonly Candidate[] {
  const lines = evidence.source.split("\n");
  return sites(evidence.source).map((site) => {
    const old = lines[site.line - 1] ?? "";
    const start = evidence.source.lastIndexOf("\n", site.position - 1) + 1;
    const edit = { line: site.line, old, new: flip(old, { position: site.position - start, kind: site.kind }) };
    return { site, edit, features: featuresOf(site, old, evidence) };
  });
}

function featuresOf(site: Site, text: string, { hint, report }: Evidence): readonly number[] {
  const middle = (hint.fromLine + hint.toLine) / 2;
  const reach = (hint.toLine - hint.fromLine) / 2 + 1;
  const distance = Math.abs(site.line - middle) / reach;
  const words = wordsOf(text);
  return [
    ...siteKinds.map((kind) => Number(kind === site.kind)),
    Number(site.line >= hint.fromLine && site.line <= hint.toLine),
    Math.max(0, 1 - distance),
    Number(report?.sourceLines.has(site.line) ?? false),
    Number(words.some((word) => report?.words.has(word) ?? false)),
  ];
}
