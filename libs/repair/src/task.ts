/**
 * A task: one package with one flip that its own tests notice, drawn from a seed.
 *
 * Which flips they notice was found once by running them (`scripts/find-killing-sites.ts`) and is checked in, so that a task
 * is drawn without running anything. The kinds of flips are drawn with a skew, and the hint lies around the flip: that is
 * what there is to learn.
 */
import { HoldpointError } from "@holdpoint/errors";
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import * as z from "zod";
import { killingSites } from "./killing-sites.ts";
import type { PackageSpec } from "./packages.ts";
import { type Random, randomOf, seedFrom } from "./random.ts";
import { flip, flipOf, type Site, type SiteKind, siteKinds } from "./sites.ts";

/** The entry of one package in the table of sites whose flip fails its tests. */
export interface KillingSites {
  readonly version: string;
  /** SHA-256 of the unbroken file. */
  readonly sourceDigest: string;
  /** Of the file. */
  readonly lines: number;
  /** For each kind the sites, by position: `position@line`, separated by a space. */
  readonly sites: Readonly<Partial<Record<SiteKind, string>>>;
}

export const Task = z.object({
  /** Names the flip and the hint: equal for equal tasks. */
  taskId: z.string(),
  package: z.string(),
  version: z.string(),
  file: z.string(),
  site: z.object({ position: z.int().nonnegative(), line: z.int().positive(), kind: z.enum(siteKinds) }),
  /** Lines of the file, both included, that the flip lies in. The agent is told. */
  hint: z.object({ fromLine: z.int().positive(), toLine: z.int().positive() }),
});
export type Task = z.infer<typeof Task>;

/** Lines of a hint, where the file is that long. */
const hintLines = 30;

/** How much more often than 1 a kind of flip is drawn, where the package has a killing site of that kind. */
const skew: Readonly<Partial<Record<SiteKind, number>>> = {
  "=== to !==": 8,
  "|| to &&": 5,
  "&& to ||": 4,
  "+ to -": 3,
  "1 to 0": 2,
  "0 to 1": 2,
};

const sitesByPackage: ReadonlyMap<string, readonly Site[]> = new Map(
  Object.entries(killingSites).map(([name, { sites }]) => [
    name,
    siteKinds.flatMap((kind) => placesOf(kind, sites[kind] ?? "")),
  ]),
);

/** The sites of this package's file whose flip fails its tests, by kind and position; none for an unknown package. */
export function killingSitesOf(spec: Pick<PackageSpec, "name">): readonly Site[] {
  return sitesByPackage.get(spec.name) ?? [];
}

/**
 * The task that `seed`, an integer of [0, 2^32), stands for in this package.
 *
 * @throws HoldpointError `not_found` where the table of killing sites has no entry for the package in this version
 */
export function taskOf({ seed, spec }: { readonly seed: number; readonly spec: PackageSpec }): Task {
  const { lines } = entryOf(spec.name, spec.version);
  const random = randomOf(seedFrom("task", seed, spec.name));
  const site = drawSite(random, killingSitesOf(spec));
  const hint = drawHint(random, site.line, lines);
  return {
    taskId: `${spec.name}-${site.position}-${siteKinds.indexOf(site.kind)}-${hint.fromLine}`,
    package: spec.name,
    version: spec.version,
    file: spec.file,
    site,
    hint,
  };
}

/**
 * The unbroken `source` of the task's file, broken as the task says.
 *
 * @throws HoldpointError `not_found` as `taskOf`; `invalid_request` where `source` is not that of the task's version
 */
export function breakSource(task: Pick<Task, "package" | "version" | "site">, source: string): string {
  const { sourceDigest } = entryOf(task.package, task.version);
  if (digestOf(source) !== sourceDigest) {
    throw new HoldpointError(
      "invalid_request",
      `the file is not that of ${task.package} ${task.version}: reinstall it`,
      {
        details: { expected: sourceDigest, found: digestOf(source) },
      },
    );
  }
  if (!source.startsWith(flipOf(task.site.kind).found, task.site.position)) {
    throw new HoldpointError("invalid_request", `${task.package} has no "${task.site.kind}" at ${task.site.position}`);
  }
  return flip(source, task.site);
}

/** Lower-case hexadecimal SHA-256 of the UTF-8 bytes of `text`. */
export function digestOf(text: string): string {
  return bytesToHex(sha256(utf8ToBytes(text)));
}

function entryOf(name: string, version: string): KillingSites {
  const entry = killingSites[name];
  if (entry?.version === version) return entry;
  const known = Object.entries(killingSites).map(([other, of]) => `${other} ${of.version}`);
  throw new HoldpointError("not_found", `no tasks for ${name} ${version}; there are some for ${known.join(", ")}`);
}

function placesOf(kind: SiteKind, places: string): readonly Site[] {
  return [...places.matchAll(/(\d+)@(\d+)/g)].map(([, position, line]) => ({
    position: Number(position),
    line: Number(line),
    kind,
  }));
}

/** A kind by the skew, then any of its sites. */
function drawSite(random: Random, candidates: readonly Site[]): Site {
  const kinds = siteKinds.filter((kind) => candidates.some((site) => site.kind === kind));
  const tickets = kinds.flatMap((kind) => Array.from({ length: skew[kind] ?? 1 }, () => kind));
  const kind = drawFrom(random, tickets);
  return drawFrom(
    random,
    candidates.filter((site) => site.kind === kind),
  );
}

/** A window whose middle is likelier near `line` than its ends are. */
function drawHint(random: Random, line: number, lines: number): Task["hint"] {
  const before = Math.floor(((random.fraction() + random.fraction()) / 2) * hintLines);
  const fromLine = Math.max(1, Math.min(line - before, lines - hintLines + 1));
  return { fromLine, toLine: Math.min(fromLine + hintLines - 1, lines) };
}

/** @throws RangeError where there is nothing to draw from */
function drawFrom<Item>(random: Random, items: readonly Item[]): Item {
  const drawn = items[random.below(items.length)];
  if (drawn === undefined) throw new RangeError("nothing to draw from");
  return drawn;
}
