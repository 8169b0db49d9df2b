/** The process of a resources server. */
import { setTimeout as delay } from "node:timers/promises";
import * as z from "zod";
import { MetricsSetting } from "../metrics-setting.ts";
import { connectToRun, openParticipant, processSettings, readSettings, runProcess } from "../process.ts";
import type { Resources } from "./define-resources.ts";
import type { McpAddress } from "./mcp-edge.ts";
import { resourcesSpec, serveResources } from "./serving.ts";

/** What the process is told by its environment. */
const ResourcesSettings = z.object({
  ...processSettings,
  /** Where MCP is served, by a definition with grants; default: a free port of loopback. */
  HOLDPOINT_MCP: MetricsSetting.optional(),
  /** By which URL clients reach it, where that is another one. */
  HOLDPOINT_MCP_URL: z.url().optional(),
});

/** How long what runs may take to end before a stop leaves it to the successor, in milliseconds. */
const patienceMs = 10_000;

/**
 * Runs a resources server until it is told to stop: in the run, and as the instance and worker, that the environment names.
 *
 * Ends the process: with 0 when it was stopped, 2 for a wrong setting, 3 where another process has taken over.
 */
export async function runResources(resources: Resources): Promise<void> {
  await runProcess(async () => {
    const settings = readSettings(ResourcesSettings, process.env);
    const spec = await resourcesSpec(resources); // before the log is claimed: one that cannot serve fences nobody
    const run = await connectToRun("resources", settings);
    const participant = await openParticipant(run, spec);
    const served = await serveResources(resources, participant, { mcp: addressOf(settings) });
    const sessions = participant.sessions.all().length;
    run.logger.info({ name: resources.name, mode: spec.mode, sessions, mcpUrl: served.mcpUrl }, "resources serves");
    return {
      stop: async () => {
        await Promise.race([served.stop(), delay(patienceMs)]);
        await run.connection.drain();
      },
    };
  }, "resources");
}

function addressOf({
  HOLDPOINT_MCP: address,
  HOLDPOINT_MCP_URL: publicUrl,
}: z.infer<typeof ResourcesSettings>): McpAddress {
  return { ...address, ...(publicUrl !== undefined && { publicUrl }) };
}
