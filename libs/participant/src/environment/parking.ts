/**
 * When the agents' sessions stood parked for a checkpoint, as the agents' logs show it: what a budget is not charged for.
 *
 * Reads the agents' logs only while a checkpoint is open or was just resumed, from where it closed admission. Those are of every
 * environment's episodes; only of this one's, and while they are under way, anything is kept.
 */
import { decodeEvents, type EventLog, eventSchema } from "@holdpoint/eventsourcing";
import type { Span } from "@holdpoint/episode";
import { type Episode, filters, logEvents } from "@holdpoint/schemas";
import { keyOf } from "@holdpoint/session";

const agentEvents = eventSchema(logEvents.agent);

/** An episode of which it was read that it was parked. */
interface Parked {
  readonly episode: Episode;
  readonly spans: Span[];
  /** Since when it is parked; undefined: it is not. */
  sinceMs: number | undefined;
}

export interface ParkingOptions {
  readonly log: EventLog;
  readonly run: string;
  /** Whether the episode is under way here. */
  readonly isLive: (episode: Episode) => boolean;
}

export class Parking {
  readonly #options: ParkingOptions;
  readonly #parked = new Map<string, Parked>();
  #next = 0;

  constructor(options: ParkingOptions) {
    this.#options = options;
  }

  /** Reads on from the later of `from` and where it stopped. */
  async readFrom(from: number): Promise<void> {
    const { log, run } = this.#options;
    const first = Math.max(from, this.#next);
    const upTo = await log.lastSequence();
    if (first > upTo) return;
    const subjects = [filters.logsOf(run, "agent")];
    await log.read({ from: first, upTo, subjects }, (message) => {
      for (const { event, timeMs } of decodeEvents(message, agentEvents).events) {
        if (event.type === "session.parked") this.#park(event.data, timeMs);
        if (event.type === "session.unparked") this.#unpark(event.data, timeMs);
      }
    });
    this.#next = upTo + 1;
  }

  /** Spans of the episode, one that has not ended up to `nowMs`. */
  spansOf(episode: Episode, nowMs: number): readonly Span[] {
    const { spans = [], sinceMs } = this.#parked.get(keyOf(episode)) ?? {};
    return sinceMs === undefined ? spans : [...spans, { fromMs: sinceMs, toMs: nowMs }];
  }

  /** Work goes on: whatever is still parked at `nowMs` ends there. */
  letGo(nowMs: number): void {
    for (const [key, parked] of this.#parked) {
      if (!this.#options.isLive(parked.episode)) this.#parked.delete(key);
      else if (parked.sinceMs !== undefined) end(parked, { fromMs: parked.sinceMs, toMs: nowMs });
    }
  }

  /** What is known of an episode that is over is needed no more. */
  forget(episode: Episode): void {
    this.#parked.delete(keyOf(episode));
  }

  /** Of how many episodes it keeps something. */
  get size(): number {
    return this.#parked.size;
  }

  #park({ rollout, attempt }: Episode, timeMs: number): void {
    const episode = { rollout, attempt };
    if (!this.#options.isLive(episode)) return;
    const parked = this.#parked.get(keyOf(episode)) ?? { episode, spans: [], sinceMs: undefined };
    this.#parked.set(keyOf(episode), parked);
    parked.sinceMs ??= timeMs;
  }

  /** What was never seen parked was so before the reading began, and that is not later than the episode's latest sample. */
  #unpark({ rollout, attempt }: Episode, timeMs: number): void {
    const episode = { rollout, attempt };
    if (!this.#options.isLive(episode)) return;
    const parked = this.#parked.get(keyOf(episode)) ?? { episode, spans: [], sinceMs: 0 };
    this.#parked.set(keyOf(episode), parked);
    if (parked.sinceMs !== undefined) end(parked, { fromMs: parked.sinceMs, toMs: timeMs });
  }
}

function end(parked: Parked, span: Span): void {
  parked.spans.push(span);
  parked.sinceMs = undefined;
}
