/**
 * The resources server of the repair workload: lends sandboxes with broken packages, runs the tools, judges by their own tests.
 * Wiring, and nothing else.
 */
import { eventSchema } from "@holdpoint/eventsourcing";
import { connectToRun, openParticipant, readSettings, runProcess, sha256 } from "@holdpoint/participant";
import { claimStateDir, dirProvider } from "@holdpoint/sandbox";
import { logEvents } from "@holdpoint/schemas";
import { setTimeout as delay } from "node:timers/promises";
import { openWorkshop, ownerOf } from "./opening.ts";
import { repairKind } from "./repair-session.ts";
import { serve } from "./server.ts";
import { Settings } from "./settings.ts";

/** How long calls that run may take to end before a stop leaves them to the successor, which rolls them back. */
const patienceMs = 10_000;

await runProcess(async () => {
  const settings = readSettings(Settings, process.env);
  const { HOLDPOINT_STATE_DIR: stateDir, HOLDPOINT_RUN: name, HOLDPOINT_INSTANCE: instance } = settings;
  // Before the log is claimed: a process that is misconfigured fences nobody.
  await claimStateDir(stateDir, ownerOf(name, instance, settings.HOLDPOINT_WORKER));
  const provider = await dirProvider({ root: stateDir });
  const run = await connectToRun("resources", settings);
  const participant = await openParticipant(run, {
    role: "resources",
    mode: "exported",
    kind: repairKind(sha256),
    schema: eventSchema(logEvents.resources),
  });
  const workshop = await openWorkshop(participant, provider, stateDir);
  await serve(workshop);
  run.logger.info({ sessions: participant.sessions.all().length, stateDir }, "resources serves");
  return {
    stop: async () => {
      await participant.stop();
      await Promise.race([workshop.benches.settled(), delay(patienceMs)]);
      await provider.close();
      workshop.executions.close();
      await run.connection.drain();
    },
  };
}, "resources");
