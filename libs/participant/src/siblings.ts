/**
 * The workers of one instance, which are one participant to the outside: a request goes to whichever holds the session.
 *
 * 1. Who holds a session answers. Of the others only one looks further, the first by name, so that nobody is asked twice.
 * 2. It asks the others, by worker, whether they hold the session or are making it: one that does answers the request itself.
 * 3. Where nobody does, a first seed goes to the worker that the rollout's digest picks, and anything else is `not_found`.
 *
 * A worker that does not answer may hold it: then nothing is decided, and the caller is told to come back.
 */
import { HoldpointError } from "@holdpoint/errors";
import { type Episode, HolderReply, type ParticipantId, rpcSubject } from "@holdpoint/schemas";
import * as z from "zod";
import type { Directory } from "./directory.ts";
import { sha256 } from "./hash.ts";
import type { Messenger } from "./messenger.ts";
import { answer } from "./rpc-client.ts";

/** Which worker a request that this one does not hold is for. */
export type Place =
  /** Another one holds the session, or looks for who does. */
  | { readonly type: "elsewhere" }
  /** Nobody holds it, and this worker may. */
  | { readonly type: "here" }
  /** Nobody holds it, and that worker may. */
  | { readonly type: "forward"; readonly worker: string };

export interface SiblingsOptions extends ParticipantId {
  readonly run: string;
  readonly worker: string;
  readonly incarnation: string;
  readonly messenger: Messenger;
  readonly directory: Directory;
}

/** How long a sibling is waited for, in milliseconds. */
const askMs = 5_000;
/** How long a request that was passed on is waited for: as long as whoever asked waits for it. */
const forwardMs = 30_000;

export class Siblings {
  readonly #options: SiblingsOptions;

  constructor(options: SiblingsOptions) {
    this.#options = options;
  }

  /** The workers of this instance that are expected, this one included, in the order of their names. */
  #workers(): readonly string[] {
    const { directory, role, instance, worker } = this.#options;
    const members = directory.of(role).filter((member) => member.instance === instance);
    return [...new Set([...members.map((member) => member.worker), worker])].toSorted();
  }

  /**
   * Whether `control` has said that this life takes part. Before, it may think that it is alone, and so may others that start with
   * it; after, each knows all who joined before it.
   */
  #isMember(): boolean {
    const { directory, role, incarnation } = this.#options;
    return directory.of(role).some((member) => member.incarnation === incarnation);
  }

  /**
   * Where a request about `episode` belongs, which this worker neither holds nor makes.
   *
   * @throws HoldpointError `unavailable` where this worker does not take part yet, or a sibling does not say whether it holds it
   */
  async place(episode: Episode): Promise<Place> {
    if (!this.#isMember()) throw new HoldpointError("unavailable", "this worker does not take part yet: ask again");
    const workers = this.#workers();
    const { worker } = this.#options;
    if (workers.length === 1) return { type: "here" };
    if (workers[0] !== worker) return { type: "elsewhere" };
    const others = workers.filter((other) => other !== worker);
    const holding = await Promise.all(others.map((other) => this.#isHolder(other, episode)));
    if (holding.includes(true)) return { type: "elsewhere" };
    const picked = pick(workers, episode.rollout);
    return picked === worker ? { type: "here" } : { type: "forward", worker: picked };
  }

  /** Passes a seed on, and gives what the reply says. */
  async forward(
    worker: string,
    { episode, body }: { readonly episode: Episode; readonly body: object },
  ): Promise<object> {
    return this.#ask({ worker, episode, method: "seed", body, timeoutMs: forwardMs });
  }

  async #isHolder(worker: string, episode: Episode): Promise<boolean> {
    const data = await this.#ask({ worker, episode, method: "holder", body: {}, timeoutMs: askMs });
    return HolderReply.parse(data).holds;
  }

  async #ask({ worker, episode, method, body, timeoutMs }: Asking): Promise<object> {
    const { run, role, instance, messenger } = this.#options;
    const subject = rpcSubject(run, episode, role, method);
    const text = JSON.stringify({ ...body, to: instance, worker });
    const bytes = await messenger
      .request(subject, text, { timeoutMs })
      .catch((error: unknown) => silent(worker, error));
    return z.looseObject({}).parse(answer(bytes, subject).data);
  }
}

interface Asking {
  readonly worker: string;
  readonly episode: Episode;
  readonly method: string;
  readonly body: object;
  readonly timeoutMs: number;
}

function silent(worker: string, cause: unknown): never {
  const words = `worker ${worker} of this instance does not answer, and may hold the session: start it again, or remove it`;
  throw new HoldpointError("unavailable", words, { cause });
}

/** Rendezvous hashing (Thaler and Ravishankar, 1998): when a worker joins or goes, only what it gets or had moves. */
function pick(workers: readonly string[], rollout: string): string {
  const weighed = workers.map((worker) => ({ worker, weight: sha256(`${worker}/${rollout}`) }));
  return weighed.reduce((best, other) => (other.weight > best.weight ? other : best)).worker;
}
