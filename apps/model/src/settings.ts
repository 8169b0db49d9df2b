import { modelSettings } from "@holdpoint/participant";
import * as z from "zod";

/** What the environment tells this model server, beside what it tells every one. */
export const Settings = z.object({
  ...modelSettings,
  /** Milliseconds that a call waits for a version of the policy that is not published yet. */
  HOLDPOINT_POLICY_WAIT_MS: z.coerce.number().int().nonnegative().default(10_000),
  /** A JSON file with the tool calls of each turn: what the policy `scripted` says. For tests only. */
  HOLDPOINT_SCRIPT_FILE: z.string().min(1).optional(),
});
