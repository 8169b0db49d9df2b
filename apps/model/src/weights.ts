/** The weights of each version of the policy, as the trainer publishes them. */
import { HoldpointError } from "@holdpoint/errors";
import {
  type BlobStore,
  decodeEvents,
  type EventLog,
  eventSchema,
  parseJson,
  type Tail,
} from "@holdpoint/eventsourcing";
import { Latch } from "@holdpoint/participant";
import { initialWeights } from "@holdpoint/repair";
import { filters, type Digest, TrainerEvent } from "@holdpoint/schemas";
import * as z from "zod";

/** Versions whose weights are kept in memory: those in use at once are few. */
const keptVersions = 16;

const trainerEvents = eventSchema(TrainerEvent);
const Vector = z.array(z.number()).length(initialWeights().length);

export interface WeightsOptions {
  readonly log: EventLog;
  readonly blobs: BlobStore;
  readonly run: string;
  /** How long a version that is not published yet is waited for, in milliseconds. */
  readonly waitMs: number;
}

export class Weights {
  readonly #options: WeightsOptions;
  readonly #published = new Map<number, Digest>();
  readonly #loaded = new Map<Digest, Promise<readonly number[]>>();
  readonly #latch = new Latch();
  #tail: Tail | undefined;

  private constructor(options: WeightsOptions) {
    this.#options = options;
  }

  /** Follows what the trainer says, from the start of the log. */
  static async follow(options: WeightsOptions): Promise<Weights> {
    const weights = new Weights(options);
    const subjects = [filters.logsOf(options.run, "trainer")];
    weights.#tail = await options.log.tail({ from: 1, subjects }, (message) => {
      for (const { event } of decodeEvents(message, trainerEvents).events) {
        if (event.type === "policy.published") weights.#published.set(event.data.version, event.data.digest);
      }
      weights.#latch.changed();
    });
    return weights;
  }

  /** The versions that there are. Version 0 has learnt nothing, and always is. */
  get versions(): readonly number[] {
    return [...new Set([0, ...this.#published.keys()])].toSorted((one, other) => one - other);
  }

  /** Rejects when what the trainer says can no longer be followed. */
  get ended(): Promise<void> {
    return this.#tail?.ended ?? Promise.resolve();
  }

  /**
   * The weights of `version`; waits for it to be published.
   *
   * @throws HoldpointError `unavailable` where it is not published in time; the signal's reason when it is aborted
   */
  async of(version: number, signal: AbortSignal): Promise<readonly number[]> {
    if (version === 0) return initialWeights();
    const digest = this.#published.get(version) ?? (await this.#awaited(version, signal));
    const loaded = this.#loaded.get(digest) ?? this.#load(digest);
    return loaded;
  }

  async stop(): Promise<void> {
    await this.#tail?.stop();
  }

  async #awaited(version: number, signal: AbortSignal): Promise<Digest> {
    const { waitMs } = this.#options;
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(notPublished(version, waitMs)), waitMs);
    try {
      await this.#latch.until(() => this.#published.has(version), AbortSignal.any([signal, late.signal]));
    } finally {
      clearTimeout(timer);
    }
    return this.#published.get(version) ?? "";
  }

  #load(digest: Digest): Promise<readonly number[]> {
    const loading = this.#options.blobs.get(digest).then((text) => readVector(text, digest));
    this.#loaded.set(digest, loading);
    loading.catch(() => this.#loaded.delete(digest)); // asked again it is tried again
    const [oldest] = this.#loaded.keys();
    if (this.#loaded.size > keptVersions && oldest !== undefined) this.#loaded.delete(oldest);
    return loading;
  }
}

function readVector(text: string, digest: Digest): readonly number[] {
  const json = parseJson(new TextEncoder().encode(text));
  const vector = Vector.safeParse(json.ok ? json.value : undefined);
  if (vector.success) return vector.data;
  const why = `${digest} holds no weights of this policy, which has ${initialWeights().length}`;
  throw new HoldpointError("invalid_checkpoint_state", why, { details: { digest } });
}

function notPublished(version: number, waitMs: number): HoldpointError {
  return new HoldpointError(
    "unavailable",
    `version ${version} of the policy was not published within ${waitMs} ms: ask again once the trainer has`,
    { details: { version } },
  );
}
