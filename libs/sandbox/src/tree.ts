/**
 * Walking, copying and comparing folder trees, in this process.
 *
 * A small tree (tens of files) takes one to two milliseconds this way, less than starting any program; a large one is worked
 * off in slices, between which others have their turn (`docs/decisions/snapshots-in-process.md`).
 *
 * A digest covers relative paths, types, permissions, link targets and contents: not times, owners, extended attributes,
 * and not whether two files were one (hard links become copies).
 */
import { HoldpointError } from "@holdpoint/errors";
import { createHash, type Hash } from "node:crypto";
import {
  type BigIntStats,
  chmodSync,
  closeSync,
  fchmodSync,
  futimesSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  symlinkSync,
  utimesSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";

export interface TreeFacts {
  /** SHA-256, lower-case hexadecimal. */
  readonly digest: string;
  readonly files: number;
  readonly sizeBytes: number;
  /** Relative paths of sockets, pipes and devices, which are left out. */
  readonly skipped: readonly string[];
  /** Changes whenever anything in the tree is written, even to the same content. Of use within one process only. */
  readonly fingerprint: string;
}

/** Entries and bytes after which others have their turn. */
const slice = { entries: 100, bytes: 4 * 1024 * 1024 };
const chunkBytes = 256 * 1024;

interface Walk {
  readonly from: string;
  /** undefined: nothing is copied. */
  readonly to: string | undefined;
  /** Whether files are read. */
  readonly contents: boolean;
  readonly digest: Hash;
  readonly fingerprint: Hash;
  readonly skipped: string[];
  readonly count: { files: number; bytes: number; sliceEntries: number; sliceBytes: number };
}

/** Copies the folder `from` to `to`, which is made: contents, permissions, times of files, links as they are. */
export function copyTree(from: string, to: string): Promise<TreeFacts> {
  return walk(from, to, true);
}

/** The digest of the folder `dir`, the one that `copyTree` gives for it. */
export async function treeDigest(dir: string): Promise<string> {
  return (await walk(dir, undefined, true)).digest;
}

/** The fingerprint of `dir` alone, which needs no file to be read. */
export async function treeFingerprint(dir: string): Promise<string> {
  return (await walk(dir, undefined, false)).fingerprint;
}

async function walk(from: string, to: string | undefined, contents: boolean): Promise<TreeFacts> {
  const state: Walk = {
    from,
    to,
    contents,
    digest: createHash("sha256"),
    fingerprint: createHash("sha256"),
    skipped: [],
    count: { files: 0, bytes: 0, sliceEntries: 0, sliceBytes: 0 },
  };
  if (to !== undefined) mkdirSync(to, { mode: 0o755 });
  await walkFolder(state, "");
  return {
    digest: state.digest.digest("hex"),
    fingerprint: state.fingerprint.digest("hex"),
    files: state.count.files,
    sizeBytes: state.count.bytes,
    skipped: state.skipped,
  };
}

/** Names are sorted by their UTF-16 units, folders are entered where they stand: the order is that of the digest. */
async function walkFolder(state: Walk, folder: string): Promise<void> {
  for (const name of readdirSync(join(state.from, folder)).toSorted()) {
    const path = folder === "" ? name : `${folder}/${name}`;
    requireReadable(path);
    await takeTurns(state);
    const stat = lstatSync(join(state.from, path), { bigint: true });
    state.fingerprint.update(
      `${JSON.stringify(path)} ${stat.ino} ${stat.mode} ${stat.size} ${stat.mtimeNs} ${stat.ctimeNs}\n`,
    );
    if (stat.isDirectory()) await takeFolder(state, path, stat);
    else if (stat.isFile()) await takeFile(state, path, stat);
    else if (stat.isSymbolicLink()) takeLink(state, path);
    else state.skipped.push(path);
  }
}

async function takeFolder(state: Walk, path: string, stat: BigIntStats): Promise<void> {
  const target = state.to === undefined ? undefined : join(state.to, path);
  state.digest.update(`folder ${permissions(stat).toString(8)} ${JSON.stringify(path)}\n`);
  if (target !== undefined) mkdirSync(target, { mode: 0o700 });
  await walkFolder(state, path);
  if (target === undefined) return;
  utimesSync(target, seconds(stat.atimeNs), seconds(stat.mtimeNs));
  chmodSync(target, permissions(stat)); // last: it may forbid to write in it
}

async function takeFile(state: Walk, path: string, stat: BigIntStats): Promise<void> {
  state.count.files += 1;
  if (!state.contents) return;
  const content = createHash("sha256");
  const source = openSync(join(state.from, path), "r");
  try {
    const target = state.to === undefined ? undefined : openSync(join(state.to, path), "wx", 0o600);
    try {
      await pump(state, { source, target, content });
      if (target !== undefined) {
        futimesSync(target, seconds(stat.atimeNs), seconds(stat.mtimeNs));
        fchmodSync(target, permissions(stat));
      }
    } finally {
      if (target !== undefined) closeSync(target);
    }
  } finally {
    closeSync(source);
  }
  state.digest.update(`file ${permissions(stat).toString(8)} ${content.digest("hex")} ${JSON.stringify(path)}\n`);
}

interface OpenFile {
  readonly source: number;
  readonly target: number | undefined;
  readonly content: Hash;
}

async function pump(state: Walk, { source, target, content }: OpenFile): Promise<void> {
  const buffer = Buffer.allocUnsafe(chunkBytes);
  for (let read = readSync(source, buffer); read > 0; read = readSync(source, buffer)) {
    const chunk = buffer.subarray(0, read);
    content.update(chunk);
    if (target !== undefined) writeAll(target, chunk);
    state.count.bytes += read;
    state.count.sliceBytes += read;
    await takeTurns(state);
  }
}

function writeAll(target: number, chunk: Uint8Array): void {
  for (let done = 0; done < chunk.length;) done += writeSync(target, chunk, done);
}

function takeLink(state: Walk, path: string): void {
  const target = readlinkSync(join(state.from, path));
  state.digest.update(`link ${JSON.stringify(target)} ${JSON.stringify(path)}\n`);
  if (state.to !== undefined) symlinkSync(target, join(state.to, path));
}

async function takeTurns({ count }: Walk): Promise<void> {
  count.sliceEntries += 1;
  if (count.sliceEntries < slice.entries && count.sliceBytes < slice.bytes) return;
  count.sliceEntries = 0;
  count.sliceBytes = 0;
  await setImmediate();
}

/** A name that is no UTF-8 reaches us mangled: better no snapshot than one without that file. */
function requireReadable(path: string): void {
  if (!path.includes("\uFFFD")) return;
  throw new HoldpointError("invalid_request", `the file name ${JSON.stringify(path)} is not UTF-8: rename it`);
}

function permissions(stat: BigIntStats): number {
  return Number(stat.mode) & 0o7777;
}

function seconds(nanoseconds: bigint): number {
  return Number(nanoseconds) / 1e9;
}
