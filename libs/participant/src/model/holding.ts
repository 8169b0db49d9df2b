/** Callers that know nothing of checkpoints: each is held while admission is closed, for as long as its patience lasts. */
import { HoldpointError } from "@holdpoint/errors";
import type { Admission } from "../admission.ts";
import type { PolicyCall } from "./chat-request.ts";

export class Holding {
  readonly #admission: Admission;
  readonly #budgetMs: number;
  readonly #spentMs = new WeakMap<PolicyCall, number>();
  readonly #held = new Map<AbortController, PolicyCall>();

  /** @param budgetMs how long one call is held, taken together */
  constructor(admission: Admission, budgetMs: number) {
    this.#admission = admission;
    this.#budgetMs = budgetMs;
  }

  /**
   * Returns when admission is open.
   *
   * @throws HoldpointError `admission_closed` when the budget is used up; why the call has ended, where it has
   */
  async wait(call: PolicyCall): Promise<void> {
    const since = performance.now();
    const spentMs = this.#spentMs.get(call) ?? 0;
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(tooLong(this.#budgetMs)), Math.max(0, this.#budgetMs - spentMs));
    this.#held.set(controller, call);
    try {
      await this.#admission.whenOpen(AbortSignal.any([controller.signal, call.signal]));
    } finally {
      clearTimeout(timer);
      this.#held.delete(controller);
      this.#spentMs.set(call, spentMs + performance.now() - since);
    }
  }

  /** Ends the calls that `isOver` says, with `reason`. */
  end(isOver: (call: PolicyCall) => boolean, reason: HoldpointError): void {
    for (const [controller, call] of this.#held) if (isOver(call)) controller.abort(reason);
  }
}

function tooLong(budgetMs: number): HoldpointError {
  return new HoldpointError(
    "admission_closed",
    `a checkpoint is open, and this call was held for ${budgetMs} ms: ask again`,
  );
}
