/** Holds a `run` to the order of the steps, in every process that runs it and whatever the log has finished already. */
import { HoldpointError } from "@holdpoint/errors";
import type { Stage } from "@holdpoint/schemas";

/** A step that `run` takes, by its bookmark. */
export type TakenStage = Exclude<Stage, "return">;

const order = ["seed", "invoke_agent", "close_agent", "verify"] as const satisfies readonly TakenStage[];
const methods = { seed: "seed", invoke_agent: "invokeAgent", close_agent: "closeAgent", verify: "verify" } as const;

export class StepOrder {
  readonly #name: string;
  #done = 0;
  #underWay: TakenStage | undefined;

  /** @param name of the environment, for messages */
  constructor(name: string) {
    this.#name = name;
  }

  /** @throws HoldpointError `invalid_phase` where `stage` is not the step that comes next, or the one before is not done */
  begin(stage: TakenStage): void {
    if (this.#underWay !== undefined) throw this.#refusal(stage, `while ${methods[this.#underWay]} was under way`);
    const next = order[this.#done];
    if (stage !== next)
      throw this.#refusal(stage, `where ${next === undefined ? "the end" : methods[next]} comes next`);
    this.#underWay = stage;
  }

  /** The step that was begun has ended. */
  end(): void {
    this.#underWay = undefined;
    this.#done += 1;
  }

  /** @throws HoldpointError `invalid_phase` where `run` has returned without taking every step */
  finish(): void {
    const next = order[this.#done];
    if (next === undefined) return;
    const left = this.#underWay === undefined ? `without ${methods[next]}` : `while ${methods[next]} was under way`;
    throw new HoldpointError("invalid_phase", `run of environment ${this.#name} returned ${left}: ${expected}`, {
      details: { expected: methods[next] },
    });
  }

  #refusal(stage: TakenStage, where: string): HoldpointError {
    const step = methods[stage];
    const words = `run of environment ${this.#name} called ${step} ${where}: ${expected}`;
    return new HoldpointError("invalid_phase", words, {
      details: { step, expected: methods[order[this.#done] ?? stage] },
    });
  }
}

const expected = `expected ${order.map((stage) => methods[stage]).join(", ")}, each once, in this order, and awaited`;
