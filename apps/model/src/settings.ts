import { processSettings } from "@holdpoint/participant";
import * as z from "zod";

const millis = z.coerce.number().int().nonnegative();

/** What the environment tells the model server, beside what every process of a run is told. */
export const ModelSettings = z.object({
  ...processSettings,
  HOLDPOINT_MODEL_HOST: z.string().min(1).default("127.0.0.1"),
  /** 0: any free port. */
  HOLDPOINT_MODEL_PORT: z.coerce.number().int().min(0).max(65_535).default(0),
  /** Milliseconds that a caller who knows nothing of checkpoints is held for; below its own timeout. */
  HOLDPOINT_HOLD_MS: millis.default(25_000),
  /** Milliseconds that a call waits for a version of the policy that is not published yet. */
  HOLDPOINT_POLICY_WAIT_MS: millis.default(10_000),
  /** A JSON file with the tool calls of each turn: what the policy `scripted` says. For tests only. */
  HOLDPOINT_SCRIPT_FILE: z.string().min(1).optional(),
});
export type ModelSettings = z.infer<typeof ModelSettings>;
