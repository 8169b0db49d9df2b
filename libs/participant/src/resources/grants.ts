/**
 * Grants: tokens that open a session's tools to whoever holds them, over MCP.
 *
 * 1. A token is 32 random bytes. It is given away once, in a reply, and written nowhere; the log and the sessions have its digest.
 * 2. A grant counts while its session lives, is not retired, and holds it. What was restored holds none: those of the attempt before
 *    are refused.
 */
import { isRefused } from "@holdpoint/checkpoint";
import { HoldpointError } from "@holdpoint/errors";
import type { Access, Digest, Episode } from "@holdpoint/schemas";
import { sha256 } from "../hash.ts";
import type { ResourcesParticipant } from "./desk.ts";

const tokenBytes = 32;
const firstPrune = 1_024;

export interface GrantOptions {
  readonly participant: ResourcesParticipant;
  readonly ttlMs: number;
  readonly random: (bytes: number) => Uint8Array;
  /** Epoch milliseconds. */
  readonly nowMs: () => number;
  /** Where MCP is served; undefined: nowhere. */
  readonly mcpUrl: string | undefined;
}

export class GrantBook {
  readonly #options: GrantOptions;
  /** Whose grant it was when it was last seen: where to look, never whether it counts. */
  readonly #episodes = new Map<Digest, Episode>();
  #pruneAt = firstPrune;

  /** Knows what the process before this one has granted. */
  constructor(options: GrantOptions) {
    this.#options = options;
    for (const { rollout, attempt, state } of options.participant.sessions.all()) {
      for (const { digest } of state.grants) this.#episodes.set(digest, { rollout, attempt });
    }
  }

  /** Another grant for a session that lives; those before it stay good until they expire. */
  async issue({ rollout, attempt }: Episode): Promise<Access> {
    const { participant, ttlMs, random, nowMs, mcpUrl } = this.#options;
    const episode = { rollout, attempt };
    const token = Buffer.from(random(tokenBytes)).toString("base64url");
    const grant = sha256(token);
    const expiresAtMs = nowMs() + ttlMs;
    await participant.record({ type: "grant.issued", data: { ...episode, grant, expiresAtMs } });
    this.#prune();
    this.#episodes.set(grant, episode);
    return { token, expiresAtMs, ...(mcpUrl !== undefined && { mcpUrl }) };
  }

  /**
   * Whose token it is.
   *
   * @throws HoldpointError `unauthorized` where it is unknown, has expired, or its attempt is over
   */
  episodeOf(token: string): Episode {
    const digest = sha256(token);
    const episode = this.#episodes.get(digest);
    if (episode !== undefined && this.#counts(digest, episode)) return episode;
    throw new HoldpointError("unauthorized", "this token opens nothing: it has expired, or its attempt is over");
  }

  #counts(digest: Digest, { rollout, attempt }: Episode): boolean {
    const { participant, nowMs } = this.#options;
    if (isRefused(participant.gate, { rollout, attempt })) return false;
    const grants = participant.sessions.get({ rollout, attempt })?.state.grants ?? [];
    return grants.some((grant) => grant.digest === digest && grant.expiresAtMs > nowMs());
  }

  /** Forgets what counts no more, each time that their number has doubled. */
  #prune(): void {
    if (this.#episodes.size < this.#pruneAt) return;
    for (const [digest, episode] of this.#episodes) if (!this.#counts(digest, episode)) this.#episodes.delete(digest);
    this.#pruneAt = Math.max(firstPrune, 2 * this.#episodes.size);
  }
}
