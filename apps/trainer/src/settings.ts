import { processSettings } from "@holdpoint/participant";
import { CheckpointId } from "@holdpoint/schemas";
import { isAbsolute } from "node:path";
import * as z from "zod";
import type { RunPlan } from "./state.ts";

const count = (least: number) => z.coerce.number().int().min(least);

const Fields = z.object({
  ...processSettings,
  /** Its own folder, one for each run: the saved state, the checkpoint files, and at the end `final.json`. */
  HOLDPOINT_STATE_DIR: z.string().refine(isAbsolute, "expected the absolute path of a folder, one for each run"),
  /** An integer of [0, 2^32). */
  HOLDPOINT_SEED: count(0)
    .max(2 ** 32 - 1)
    .default(1),
  /** A multiple of the siblings. */
  HOLDPOINT_ROLLOUTS: count(1).default(16),
  HOLDPOINT_SIBLINGS: count(2).default(4),
  /** How many groups the policy may lag behind. */
  HOLDPOINT_POLICY_LAG: count(0).default(1),
  /** Of each episode; absent: unbounded. */
  HOLDPOINT_BUDGET_MS: count(1).optional(),
  /** Time between checkpoints while there is progress; one follows each trained group too. 0: no checkpoints at all. */
  HOLDPOINT_CHECKPOINT_EVERY_MS: count(0).default(4000),
  /** The deadline of each control command. */
  HOLDPOINT_CHECKPOINT_TIMEOUT_MS: count(1).default(30_000),
  /** `latest`, or the id of a checkpoint to go back to; absent: on from the saved state. */
  HOLDPOINT_RESTORE: z.union([z.literal("").transform(() => undefined), CheckpointId]).optional(),
});

/** Whether the two numbers can be compared, whatever is wrong with the others: so every fault is named at once. */
function hasNumbers({ value }: { readonly value: unknown }): boolean {
  return Fields.pick({ HOLDPOINT_ROLLOUTS: true, HOLDPOINT_SIBLINGS: true }).safeParse(value).success;
}

/** What the trainer is told by its environment. */
export const TrainerSettings = Fields.refine(
  ({ HOLDPOINT_ROLLOUTS: rollouts, HOLDPOINT_SIBLINGS: siblings }) => rollouts % siblings === 0,
  { error: "expected a multiple of HOLDPOINT_SIBLINGS", path: ["HOLDPOINT_ROLLOUTS"], when: hasNumbers },
);
export type TrainerSettings = z.infer<typeof TrainerSettings>;

export function planOf(settings: TrainerSettings): RunPlan {
  return {
    run: settings.HOLDPOINT_RUN,
    seed: settings.HOLDPOINT_SEED,
    rollouts: settings.HOLDPOINT_ROLLOUTS,
    siblings: settings.HOLDPOINT_SIBLINGS,
    policyLag: settings.HOLDPOINT_POLICY_LAG,
  };
}
