/** Malformed requests, as the log is told of them: a flood of them must not fill it. */
import type { Problem } from "@holdpoint/schemas";

const windowMs = 60_000;
/** The most that are recorded of one window; of the rest only the number, with the next that is. */
const maxPerWindow = 20;
const maxCharacters = 256;

export interface Refusal {
  readonly subject: string;
  readonly problem: Problem;
}

export class Refusals {
  readonly #nowMs: () => number;
  readonly #record: (refusal: Refusal) => void;
  #sinceMs = Number.NEGATIVE_INFINITY;
  #recorded = 0;
  #unrecorded = 0;

  constructor(nowMs: () => number, record: (refusal: Refusal) => void) {
    this.#nowMs = nowMs;
    this.#record = record;
  }

  note(subject: string, { code, message }: Problem): void {
    if (this.#nowMs() - this.#sinceMs >= windowMs) {
      this.#sinceMs = this.#nowMs();
      this.#recorded = 0;
    }
    if (this.#recorded >= maxPerWindow) {
      this.#unrecorded += 1;
      return;
    }
    const details = { unrecorded: this.#unrecorded };
    const problem = { code, message: message.slice(0, maxCharacters), ...(this.#unrecorded > 0 && { details }) };
    this.#recorded += 1;
    this.#unrecorded = 0;
    this.#record({ subject: subject.slice(0, maxCharacters), problem });
  }
}
