/**
 * Work on sessions: for each one thing at a time, in the order asked; what is asked twice at the same time is done once.
 *
 * A bench that was stopped takes no more work. It is forgotten when its session is over.
 */
import type { Episode } from "@holdpoint/schemas";
import { keyOf } from "@holdpoint/session";

/** @typeParam Joined what work gives that is shared under a name */
export class Bench<Joined> {
  readonly #controller = new AbortController();
  readonly #joined = new Map<string, Promise<Joined>>();
  readonly #running = new Set<Promise<unknown>>();
  #last: Promise<unknown> = Promise.resolve();

  /** Aborted when the bench is stopped. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get isIdle(): boolean {
    return this.#running.size === 0;
  }

  /** Runs `work` once what was asked before has ended. @throws why the bench was stopped */
  run<Result>(work: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
    const done = this.#last.then(() => {
      this.signal.throwIfAborted();
      return work(this.signal);
    });
    this.#last = done.catch(() => {});
    return this.#follow(done);
  }

  /** Does `work`, or shares what is being done under that name. */
  join(name: string, work: () => Promise<Joined>): Promise<Joined> {
    const joined = this.#joined.get(name);
    if (joined !== undefined) return joined;
    const done = this.#follow(work()).finally(() => this.#joined.delete(name));
    this.#joined.set(name, done);
    return done;
  }

  /** Calls off what runs, and returns once nothing does. */
  async stop(why: Error): Promise<void> {
    this.#controller.abort(why);
    while (this.#running.size > 0) await Promise.allSettled(this.#running);
  }

  /** Returns once what was asked by now has ended. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#running);
  }

  #follow<Result>(done: Promise<Result>): Promise<Result> {
    const followed = done.finally(() => this.#running.delete(followed));
    this.#running.add(followed);
    return followed;
  }
}

interface Place<Kept> {
  readonly episode: Episode;
  readonly bench: Kept;
}

export class Benches<Kept extends Bench<unknown>> {
  readonly #make: () => Kept;
  readonly #benches = new Map<string, Place<Kept>>();

  constructor(make: () => Kept) {
    this.#make = make;
  }

  /** The bench of an episode, made where there is none. */
  of({ rollout, attempt }: Episode): Kept {
    const key = keyOf({ rollout, attempt });
    const known = this.#benches.get(key);
    if (known !== undefined) return known.bench;
    const bench = this.#make();
    this.#benches.set(key, { episode: { rollout, attempt }, bench });
    return bench;
  }

  /** Does `work` at the bench of an episode, and forgets that bench if it stands idle after and `isLive` says that no session needs it. */
  async at<Result>(episode: Episode, isLive: () => boolean, work: (bench: Kept) => Promise<Result>): Promise<Result> {
    const bench = this.of(episode);
    try {
      return await work(bench);
    } finally {
      if (bench.isIdle && !isLive()) this.drop(episode, bench);
    }
  }

  /** Forgets `bench`, unless there is another by now. */
  drop(episode: Episode, bench: Kept): void {
    if (this.#benches.get(keyOf(episode))?.bench === bench) this.#benches.delete(keyOf(episode));
  }

  /** Those of the attempts named, and of all before them. */
  upTo(marks: readonly Episode[]): readonly Place<Kept>[] {
    const highest = new Map(marks.map(({ rollout, attempt }) => [rollout, attempt]));
    return [...this.#benches.values()].filter(
      ({ episode: { rollout, attempt } }) => attempt <= (highest.get(rollout) ?? -1),
    );
  }

  /** Returns once all that was asked by now has ended. */
  async settled(): Promise<void> {
    await Promise.all([...this.#benches.values()].map(({ bench }) => bench.settled()));
  }
}
