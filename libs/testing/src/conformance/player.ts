/** Whoever works with the participant under examination, as the roles around it do. One for each role. */
import type { Edges, Episode, Role } from "@holdpoint/schemas";
import type { Answered } from "./rig.ts";

/** A request that nobody can make sense of, and the code that it has to be answered with. */
export interface MalformedRequest {
  readonly what: string;
  readonly code: string;
  readonly send: () => Promise<Answered>;
}

export interface Player {
  /** What the contract says of new work while a checkpoint is open: it is held, or refused with this code. */
  readonly whileClosed: "waits" | "admission_closed";
  /** Brings a session into being, and to a boundary where it stays. */
  begin(episode: Episode): Promise<void>;
  /** Has one unit of work done, named by the session's next turn. @returns what came of it, the same text for the same outcome */
  advance(episode: Episode): Promise<string>;
  /** What came of the units so far, as the participant says it when it is asked again for the same. */
  recall(episode: Episode): Promise<readonly string[]>;
  /** Goes on with `to`, which was restored from what `from` was after `units` units. */
  claim(from: Episode, to: Episode, units: number): Promise<void>;
  /** Asks for work that is new. It may be held: the promise settles when it is answered. */
  fresh(episode: Episode): Promise<Answered>;
  /** What a request for the episode's session meets. */
  probe(episode: Episode): Promise<Answered>;
  readonly malformed: readonly MalformedRequest[];
  edgesOf(role: Role, episode: Episode): Edges;
  /** The type of the event with which a unit of work is done: for each turn there is one, however often it is asked for. */
  readonly doneAs?: string;
  /** agent and resources: seeds the session again, as before or with the workload's other seed. */
  reseed?(episode: Episode, other: boolean): Promise<Answered>;
  /** agent and resources: ends the session in order. */
  close?(episode: Episode): Promise<Answered>;
  /** Tokens that it has handed out. */
  readonly secrets?: readonly string[];
  /** environment: lets the episode come to its end. @returns how many results say that it has finished */
  finish?(episode: Episode): Promise<number>;
  stop?(): Promise<void>;
}

/** What came of the units of each session. */
export class Units {
  readonly #done = new Map<string, string[]>();

  of({ rollout, attempt }: Episode): readonly string[] {
    return this.#done.get(`${rollout}/${attempt}`) ?? [];
  }

  add({ rollout, attempt }: Episode, outcome: string): void {
    const key = `${rollout}/${attempt}`;
    this.#done.set(key, [...(this.#done.get(key) ?? []), outcome]);
  }

  continue(from: Episode, to: Episode, units: number): void {
    this.#done.set(`${to.rollout}/${to.attempt}`, this.of(from).slice(0, units));
  }

  /** How many, and the latest: what both ends of the calls have to agree about. */
  edge(episode: Episode): { received: number; last: string | null } {
    const done = this.of(episode);
    return { received: done.length, last: done.at(-1) ?? null };
  }
}
