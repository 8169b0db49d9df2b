/** The end of a hold that nobody ends: by this process' own clock, held against the stream's time, so that clocks need not agree. */
import { leaseEndOf, type ParticipantGate } from "@holdpoint/checkpoint";

/** How much later than the coordinator a process acts, in milliseconds: where one leads, it has everybody resume in order. */
const patienceMs = 5_000;

/** Longest sleep of a timer of this platform, in milliseconds. */
const maxTimerMs = 2 ** 31 - 1;

export class LeaseWatch {
  readonly #nowMs: () => number;
  readonly #expire: (checkpointId: string) => Promise<unknown>;
  #timer: NodeJS.Timeout | undefined;

  /**
   * @param nowMs stream time, epoch milliseconds
   * @param expire says in the log that the lease ran out; called once at a time, and again where it failed
   */
  constructor(nowMs: () => number, expire: (checkpointId: string) => Promise<unknown>) {
    this.#nowMs = nowMs;
    this.#expire = expire;
  }

  /** Waits for the end of what holds `gate` now, and for nothing else. */
  look(gate: ParticipantGate): void {
    this.stop();
    const untilMs = leaseEndOf(gate);
    const { closed } = gate;
    if (untilMs === undefined || closed === undefined) return;
    const leftMs = untilMs + patienceMs - this.#nowMs();
    this.#timer = setTimeout(
      () => void this.#ring(gate, closed.checkpointId),
      Math.min(Math.max(0, leftMs), maxTimerMs),
    );
    this.#timer.unref();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  /** A timer may ring early, where the clocks drifted: then it is set anew. */
  async #ring(gate: ParticipantGate, checkpointId: string): Promise<void> {
    const untilMs = leaseEndOf(gate) ?? 0;
    if (this.#nowMs() < untilMs + patienceMs) return this.look(gate);
    await this.#expire(checkpointId);
  }
}
