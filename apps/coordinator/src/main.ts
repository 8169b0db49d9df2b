/** The coordinator: takes the controller's commands and drives the participants. Wiring, and nothing else. */
import { ensureStream, publishCommand, type RunningService, serve, streamPromise } from "@holdpoint/jetstream";
import { connectToRun, exitCodes, readSettings, type RunConnections, runProcess, sha256 } from "@holdpoint/participant";
import { randomUUID } from "node:crypto";
import { CommandService } from "./command-service.ts";
import { weaknessesOf } from "./durability.ts";
import { endpointsOf } from "./endpoints.ts";
import { noteOf } from "./journal.ts";
import { Leader } from "./leader.ts";
import { Settings } from "./settings.ts";

/** Serves commands as requests, whoever leads. */
async function serveCommands(run: string, connections: RunConnections): Promise<[CommandService, RunningService]> {
  const { connection, log } = connections;
  const commands = new CommandService({
    run,
    publish: (draft) => publishCommand(connection, run, draft),
    lastOn: (subject) => log.lastOn(subject),
    newMessageId: randomUUID,
  });
  const service = await serve(connection, {
    name: "holdpoint-coordinator",
    version: "0.1.0",
    description: `Checkpoint and restore of the run ${run}`,
    metadata: { run },
    endpoints: endpointsOf(run, (operation, body) => commands.obey(operation, body)),
  });
  return [commands, service];
}

/** Ends the process when the leader does, unless it was told to stop. */
async function lead(leader: Leader, { logger }: RunConnections): Promise<void> {
  try {
    if ((await leader.run()) === "stopped") return;
    logger.error("another coordinator has taken over; this one stops");
    process.exit(exitCodes.fenced);
  } catch (error) {
    logger.error({ err: error }, "the coordinator cannot go on");
    process.exit(exitCodes.failed);
  }
}

await runProcess(async () => {
  const settings = readSettings(Settings, process.env);
  const { HOLDPOINT_RUN: run, HOLDPOINT_MONITOR_URL: monitorUrl } = settings;
  const allowWeak = settings.HOLDPOINT_ALLOW_WEAK === "yes";
  const connections = await connectToRun("coordinator", settings);
  const { connection, log, logger, incarnation } = connections;
  await ensureStream(connection, run, { allowWeak });
  const promise = await streamPromise(connection, run, monitorUrl === undefined ? {} : { monitorUrl });
  for (const weakness of weaknessesOf(promise, allowWeak)) logger.warn({ promise }, weakness);
  const [commands, service] = await serveCommands(run, connections);
  const leader = new Leader({
    run,
    log,
    incarnation,
    promise,
    leaseGraceMs: settings.HOLDPOINT_LEASE_GRACE_MS,
    clock: () => Date.now(),
    hash: sha256,
    seen: (message) => commands.seen(message),
    decided: ({ sequence }, decision) => logger.info({ sequence, ...noteOf(decision) }, "decided"),
  });
  await leader.start();
  logger.info({ sequence: leader.state.sequence, phase: leader.state.phase }, "coordinator leads");
  void lead(leader, connections);
  return {
    stop: async () => {
      await service.stop();
      await leader.stop();
      await connection.drain();
      logger.info("coordinator stopped");
    },
  };
});
