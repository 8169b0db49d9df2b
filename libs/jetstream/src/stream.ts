/** The streams of a run: how they are made, and what of their settings the rules of the log rest on. */
import { HoldpointError } from "@holdpoint/errors";
import { blobBucket, snapshotBucket, streamName, streamSubjects } from "@holdpoint/schemas";
import { DiscardPolicy, PersistMode, RetentionPolicy, StorageType, type StreamConfig } from "@nats-io/jetstream";
import { type Connection, internals } from "./connection.ts";
import { persist } from "./persist.ts";

export interface StreamOptions {
  /** Copies of each message, on as many servers. Default: 1. */
  readonly replicas?: number;
  /** Bytes that the log may take; admission closes before. Default: 4 GiB, or as much of it as the broker can set aside. */
  readonly maxBytes?: number;
  /** Bytes that the blobs may take. Default: as for the log. */
  readonly maxBlobBytes?: number;
  /** Use streams that exist although their settings promise less than ours. Default: false. */
  readonly allowWeak?: boolean;
}

const gibibyte = 2 ** 30;
const maxSnapshotBytes = 256 * 2 ** 20;
const defaultMaxBytes = 4 * gibibyte;
/** With less than this, give or take, no run of any length can be held. */
const leastMaxBytes = gibibyte / 16;
const largestMessageBytes = 2 ** 20;
const duplicateWindowMs = 600_000;
const nanosPerMs = 1e6;

/** What the settings have to be. */
type Wanted = Readonly<Partial<StreamConfig>> & { readonly name: string; readonly max_bytes: number };

/** Both streams: on disk, nothing ever dropped, nothing deleted but by a purge, writers refused when it is full. */
function kept(maxBytes: number, replicas: number) {
  return {
    storage: StorageType.File,
    retention: RetentionPolicy.Limits,
    discard: DiscardPolicy.New,
    max_bytes: maxBytes,
    max_age: 0,
    max_msgs: -1,
    max_msgs_per_subject: -1,
    max_msg_size: largestMessageBytes,
    deny_delete: true,
    allow_direct: true,
    num_replicas: replicas,
    duplicate_window: duplicateWindowMs * nanosPerMs,
  } as const;
}

function logConfig(run: string, { maxBytes = defaultMaxBytes, replicas = 1 }: StreamOptions) {
  return {
    ...kept(maxBytes, replicas),
    name: streamName(run),
    subjects: streamSubjects(run),
    allow_atomic: true,
    republish: { src: ">", dest: "live.>" },
  };
}

function blobConfig(run: string, { maxBlobBytes = defaultMaxBytes, replicas = 1 }: StreamOptions) {
  return { ...kept(maxBlobBytes, replicas), name: blobBucket(run), subjects: [`hpb.${run}.>`] };
}

/** The latest snapshot of each fold, to be thrown away at will: nothing is promised of it. Never larger than its log. */
function snapshotConfig(run: string, { maxBytes = defaultMaxBytes, replicas = 1 }: StreamOptions) {
  return {
    storage: StorageType.File,
    discard: DiscardPolicy.Old,
    max_bytes: Math.min(maxSnapshotBytes, maxBytes),
    max_msgs_per_subject: 1,
    allow_direct: true,
    num_replicas: replicas,
    // a snapshot saved again under the same message id has to be stored again
    duplicate_window: 100 * nanosPerMs,
    name: snapshotBucket(run),
    subjects: [`hpf.${run}.>`],
  };
}

/**
 * Makes the streams of `run`, for its log and its blobs, or checks those that exist; a given maximum holds for these too.
 *
 * @throws HoldpointError `unavailable` where one that exists promises less than ours (unless `allowWeak`), where the server has
 *   no room for them, or `unauthorized` where the user may not make streams
 */
export async function ensureStream(connection: Connection, run: string, options: StreamOptions = {}): Promise<void> {
  await ensure(connection, logConfig(run, options), options.maxBytes, options);
  await ensure(connection, blobConfig(run, options), options.maxBlobBytes, options);
  const snapshots = snapshotConfig(run, options);
  if ((await existing(connection, snapshots.name)) === undefined) await create(connection, snapshots, true);
}

async function ensure(
  connection: Connection,
  config: Wanted,
  maxBytes: number | undefined,
  { allowWeak = false }: StreamOptions,
): Promise<void> {
  const found = (await existing(connection, config.name)) ?? (await create(connection, config, maxBytes === undefined));
  const faults = weaknesses(found, config);
  if (faults.length > 0 && !allowWeak) throw weak(config.name, faults);
  if (maxBytes === undefined || found.max_bytes === maxBytes) return;
  const { manager } = internals(connection);
  const update = () => manager.streams.update(config.name, { max_bytes: maxBytes });
  await connection.whileConnected(`setting the maximum of ${config.name}`, update);
}

async function existing(connection: Connection, name: string): Promise<StreamConfig | undefined> {
  const { manager } = internals(connection);
  try {
    return (await persist(connection, `asking about ${name}`, () => manager.streams.info(name))).config;
  } catch (error) {
    if (HoldpointError.is(error, "not_found")) return undefined;
    throw error;
  }
}

/** With `less` room where the server has not enough and that was not asked for. */
async function create(connection: Connection, config: Wanted, less: boolean): Promise<StreamConfig> {
  const { manager } = internals(connection);
  try {
    return (await connection.whileConnected(`making ${config.name}`, () => manager.streams.add(config))).config;
  } catch (error) {
    const apiCode = HoldpointError.is(error) && error.details["apiCode"];
    const found = apiCode === nameInUse ? await existing(connection, config.name) : undefined;
    if (found !== undefined) return found;
    if (apiCode !== noStorage) throw error;
    const half = Math.floor(config.max_bytes / 2);
    if (less && half >= leastMaxBytes) return create(connection, { ...config, max_bytes: half }, less);
    throw noRoom(config, error);
  }
}

const nameInUse = 10058;
const noStorage = 10047;

function noRoom({ name, max_bytes: bytes }: Wanted, cause: unknown): HoldpointError {
  const text = `the broker has no room for ${name}, which may grow to ${bytes} bytes; give it a larger disk, or a smaller maximum`;
  return new HoldpointError("unavailable", text, { cause, details: { bytes } });
}

/** What of `found` promises less than `wanted`, as sentences. */
function weaknesses(found: StreamConfig, wanted: Wanted): string[] {
  const faults: string[] = [];
  const expect = (name: string, holds: boolean, is: unknown, should: unknown) => {
    if (!holds) faults.push(`${name} is ${JSON.stringify(is)}, expected ${JSON.stringify(should)}`);
  };
  for (const name of exactSettings) {
    expect(name, (found[name] ?? false) === (wanted[name] ?? false), found[name], wanted[name]);
  }
  const subjects = found.subjects.toSorted().join(" ");
  const wantedSubjects = wanted.subjects?.toSorted().join(" ");
  expect("subjects", subjects === wantedSubjects, subjects, wantedSubjects);
  expect("persist_mode", found.persist_mode !== PersistMode.Async, found.persist_mode, "default");
  expect("max_bytes", found.max_bytes > 0, found.max_bytes, "a bound, so that a full stream refuses in time");
  expect("max_msg_size", allows(found.max_msg_size, largestMessageBytes), found.max_msg_size, largestMessageBytes);
  const window = duplicateWindowMs * nanosPerMs;
  expect("duplicate_window", found.duplicate_window >= window, found.duplicate_window, `at least ${window}`);
  const replicas = wanted.num_replicas ?? 1;
  expect("num_replicas", found.num_replicas >= replicas, found.num_replicas, `at least ${replicas}`);
  return faults;
}

const exactSettings = [
  "storage",
  "retention",
  "discard",
  "max_age",
  "max_msgs",
  "max_msgs_per_subject",
  "deny_delete",
  "allow_direct",
  "sealed",
  "mirror",
  "sources",
  "allow_atomic",
] as const;

/** Whether a limit, -1 for none, lets `bytes` through. */
function allows(limit: number, bytes: number): boolean {
  return limit === -1 || limit >= bytes;
}

function weak(name: string, faults: readonly string[]): HoldpointError {
  const advice = "mend it with `nats stream edit`, use another run, or allow weak streams";
  return new HoldpointError(
    "unavailable",
    `the stream ${name} promises less than is needed: ${faults.join("; ")}; ${advice}`,
    {
      details: { faults },
    },
  );
}
