import { processSettings } from "@holdpoint/participant";
import { isAbsolute } from "node:path";
import * as z from "zod";

/** What this process is told by its environment. */
export const Settings = z.object({
  ...processSettings,
  /** The folder of this server's sandboxes and snapshots: of this server in this run alone. */
  HOLDPOINT_STATE_DIR: z
    .string({ error: "expected an absolute path: the folder of this server's sandboxes and snapshots" })
    .refine(isAbsolute, { error: "expected an absolute path, such as /var/lib/holdpoint/<run>/resources" }),
});
