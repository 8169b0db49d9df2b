/** The model server of the repair workload: `softmax`, which learns, and for tests `scripted`. */
import { readSettings, runModel } from "@holdpoint/participant";
import { repairModel } from "./policies.ts";
import { readScript } from "./script.ts";
import { Settings } from "./settings.ts";

await runModel(async () => {
  const { HOLDPOINT_SCRIPT_FILE: file, HOLDPOINT_POLICY_WAIT_MS: waitMs } = readSettings(Settings, process.env);
  return repairModel({ waitMs, script: file === undefined ? undefined : await readScript(file) });
});
