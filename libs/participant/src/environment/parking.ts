/**
 * When the agents' sessions stood parked for a checkpoint, as the agents' logs show it: what a budget is not charged for.
 *
 * Reads the agents' logs only while a checkpoint is open or was just resumed, from where it closed admission.
 */
import { decodeEvents, type EventLog, eventSchema } from "@holdpoint/eventsourcing";
import type { Span } from "@holdpoint/episode";
import { type Episode, filters, logEvents } from "@holdpoint/schemas";
import { keyOf } from "@holdpoint/session";

const agentEvents = eventSchema(logEvents.agent);

export class Parking {
  readonly #log: EventLog;
  readonly #run: string;
  readonly #spans = new Map<string, Span[]>();
  readonly #since = new Map<string, number>();
  /** Episodes of which it has read that they were parked. */
  readonly #seen = new Set<string>();
  #next = 0;

  constructor(log: EventLog, run: string) {
    this.#log = log;
    this.#run = run;
  }

  /** Reads on from the later of `from` and where it stopped. */
  async readFrom(from: number): Promise<void> {
    const first = Math.max(from, this.#next);
    const upTo = await this.#log.lastSequence();
    if (first > upTo) return;
    const subjects = [filters.logsOf(this.#run, "agent")];
    await this.#log.read({ from: first, upTo, subjects }, (message) => {
      for (const { event, timeMs } of decodeEvents(message, agentEvents).events) {
        if (event.type === "session.parked") this.#parked(event.data, timeMs);
        if (event.type === "session.unparked") this.#unparked(event.data, timeMs);
      }
    });
    this.#next = upTo + 1;
  }

  /** Spans of the episode, one that has not ended up to `nowMs`. */
  spansOf(episode: Episode, nowMs: number): readonly Span[] {
    const key = keyOf(episode);
    const sinceMs = this.#since.get(key);
    const ended = this.#spans.get(key) ?? [];
    return sinceMs === undefined ? ended : [...ended, { fromMs: sinceMs, toMs: nowMs }];
  }

  /** Work goes on: whatever is still parked at `nowMs` ends there. */
  letGo(nowMs: number): void {
    for (const [key, fromMs] of this.#since) this.#end(key, { fromMs, toMs: nowMs });
    this.#since.clear();
  }

  /** What is known of an episode that is over is needed no more. */
  forget(episode: Episode): void {
    this.#spans.delete(keyOf(episode));
    this.#seen.delete(keyOf(episode));
  }

  #parked(episode: Episode, timeMs: number): void {
    this.#seen.add(keyOf(episode));
    if (!this.#since.has(keyOf(episode))) this.#since.set(keyOf(episode), timeMs);
  }

  /** What was never seen parked was so before the reading began, and that is not later than the episode's latest sample. */
  #unparked(episode: Episode, timeMs: number): void {
    const key = keyOf(episode);
    const fromMs = this.#seen.has(key) ? this.#since.get(key) : 0;
    this.#seen.add(key);
    this.#since.delete(key);
    if (fromMs !== undefined) this.#end(key, { fromMs, toMs: timeMs });
  }

  #end(key: string, span: Span): void {
    this.#spans.set(key, [...(this.#spans.get(key) ?? []), span]);
  }
}
