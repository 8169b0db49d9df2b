/**
 * What the trainer follows of the run: what was decided, which episodes were opened, and how they ended.
 *
 * It reads everything there is before anything is dispatched, and follows from there, without a gap: an episode that was opened
 * is never dispatched again, whoever asked for it.
 */
import { decodeEvents, type EventLog, eventSchema, type StoredMessage } from "@holdpoint/eventsourcing";
import { Directory, Latch, sha256 } from "@holdpoint/participant";
import { ControlEvent, controlSubject, type Episode, filters, logEvents } from "@holdpoint/schemas";
import { ControlHistory } from "./control-history.ts";
import type { KnownRollout } from "./next-step.ts";
import { EpisodeResult, type ResultMessage } from "./state.ts";

const controlEvents = eventSchema(ControlEvent);
const environmentEvents = eventSchema(logEvents.environment);

export class RunView {
  readonly history: ControlHistory;
  readonly directory = new Directory();
  readonly #latch = new Latch();
  readonly #control: string;
  readonly #opened = new Map<string, Set<number>>();
  readonly #openedAt = new Map<string, number>();
  /** The digest of the task with which each rollout was opened first. */
  readonly #tasks = new Map<string, string>();
  readonly #results: ResultMessage[] = [];
  readonly #trouble: (what: string) => void;
  #changes = 0;
  #failure: Error | undefined;

  /** @param trouble told of what cannot be read */
  constructor(stream: string, run: string, trouble: (what: string) => void) {
    this.history = new ControlHistory(stream);
    this.#control = controlSubject(run);
    this.#trouble = trouble;
  }

  /** Subjects whose messages `take` is to be given, in stream order. */
  static subjects(run: string): readonly string[] {
    return [controlSubject(run), filters.logsOf(run, "environment"), filters.results(run)];
  }

  take(message: StoredMessage): void {
    if (message.subject === this.#control) this.#takeControl(message);
    else this.#takeEnvironment(message);
    this.changed();
  }

  /** Counts what was taken: another number is another view. */
  get changes(): number {
    return this.#changes;
  }

  /** Something else happened that whoever waits should look at. */
  changed(): void {
    this.#changes += 1;
    this.#latch.changed();
  }

  /** Nothing is followed any more, for this reason: whoever looks next is told. */
  fail(error: unknown): void {
    this.#failure = error instanceof Error ? error : new Error(String(error));
    this.changed();
  }

  /**
   * Returns once `holds()`, whatever has to be followed until then.
   *
   * @throws the reason why nothing is followed any more; the signal's reason
   */
  async until(holds: () => boolean, signal?: AbortSignal): Promise<void> {
    await this.#latch.until(() => {
      if (this.#failure !== undefined) throw this.#failure;
      return holds();
    }, signal);
  }

  isOpened({ rollout, attempt }: Episode): boolean {
    return this.#opened.get(rollout)?.has(attempt) ?? false;
  }

  /** The sequence at which the first attempt of the rollout was opened; 1 where none was. */
  openedAt(rollout: string): number {
    return this.#openedAt.get(rollout) ?? 1;
  }

  /** The digest of the task with which the rollout was opened; undefined where it never was. */
  taskOf(rollout: string): string | undefined {
    return this.#tasks.get(rollout);
  }

  /** Messages with results after `cursor`, in stream order. */
  resultsAfter(cursor: number): readonly ResultMessage[] {
    const at = this.#results.findLastIndex(({ sequence }) => sequence <= cursor);
    return this.#results.slice(at + 1);
  }

  /** Every rollout that was ever opened. */
  known(): ReadonlyMap<string, KnownRollout> {
    const known = new Map<string, { highest: number; results: EpisodeResult[] }>();
    for (const [rollout, attempts] of this.#opened) known.set(rollout, { highest: Math.max(...attempts), results: [] });
    for (const { results } of this.#results) {
      for (const result of results) known.get(result.rollout)?.results.push(result);
    }
    return known;
  }

  #takeControl(message: StoredMessage): void {
    const { events, problems } = decodeEvents(message, controlEvents);
    for (const problem of problems) this.#trouble(problem);
    for (const recorded of events) {
      this.history.apply(recorded);
      this.directory.apply(recorded);
    }
  }

  #takeEnvironment(message: StoredMessage): void {
    const { events, problems } = decodeEvents(message, environmentEvents);
    for (const problem of problems) this.#trouble(problem);
    const results: EpisodeResult[] = [];
    for (const { event, sequence } of events) {
      if (event.type === "episode.opened") this.#open(event.data, sequence, event.data.task.digest);
      else if (event.type === "episode.ended") results.push(EpisodeResult.parse({ ...event.data, sequence }));
    }
    if (results.length === 0) return;
    const anchor = sha256(new TextDecoder().decode(message.body));
    this.#results.push({ sequence: message.sequence, anchor, results });
  }

  #open({ rollout, attempt }: Episode, sequence: number, task: string): void {
    if (!this.#tasks.has(rollout)) this.#tasks.set(rollout, task);
    if (!this.#openedAt.has(rollout)) this.#openedAt.set(rollout, sequence);
    const attempts = this.#opened.get(rollout) ?? new Set();
    this.#opened.set(rollout, attempts.add(attempt));
  }
}

/** Reads the run from `from` up to its present end. @returns that end */
export async function readRun(log: EventLog, run: string, view: RunView, from = 1): Promise<number> {
  const upTo = await log.lastSequence();
  await log.read({ from, upTo, subjects: RunView.subjects(run) }, (message) => view.take(message));
  return upTo;
}
