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
  #isStarted = false;
  /** What is waited for. */
  #untilMs: number | undefined;
  #checkpointId: string | undefined;

  /**
   * @param nowMs stream time, epoch milliseconds
   * @param expire says in the log that the lease ran out
   */
  constructor(nowMs: () => number, expire: (checkpointId: string) => Promise<unknown>) {
    this.#nowMs = nowMs;
    this.#expire = expire;
  }

  /** From here on it acts: before, its process only reads what was. */
  start(gate: ParticipantGate): void {
    this.#isStarted = true;
    this.look(gate);
  }

  /** Waits for the end of what holds `gate` now, and for nothing else. */
  look(gate: ParticipantGate): void {
    const untilMs = leaseEndOf(gate);
    const checkpointId = gate.closed?.checkpointId;
    if (!this.#isStarted || (untilMs === this.#untilMs && checkpointId === this.#checkpointId)) return;
    this.#untilMs = untilMs;
    this.#checkpointId = checkpointId;
    this.#wait(checkpointId ?? "");
  }

  stop(): void {
    this.#isStarted = false;
    clearTimeout(this.#timer);
  }

  #wait(checkpointId: string): void {
    clearTimeout(this.#timer);
    if (this.#untilMs === undefined) return;
    const leftMs = Math.max(0, this.#untilMs + patienceMs - this.#nowMs());
    this.#timer = setTimeout(() => void this.#ring(checkpointId), Math.min(leftMs, maxTimerMs));
    this.#timer.unref();
  }

  /** A timer may ring early, where the clocks drifted: then it is set anew. */
  async #ring(checkpointId: string): Promise<void> {
    if (this.#untilMs === undefined) return;
    if (this.#nowMs() < this.#untilMs + patienceMs) this.#wait(checkpointId);
    else await this.#expire(checkpointId);
  }
}
