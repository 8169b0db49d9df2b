/** The coordinator: takes the controller's commands and drives the participants. Wiring, and nothing else. */
import {
  ensureStream,
  openSnapshots,
  publishCommand,
  type RunningService,
  serve,
  streamPromise,
} from "@holdpoint/jetstream";
import { connectToRun, exitCodes, readSettings, type RunConnections, runProcess, sha256 } from "@holdpoint/participant";
import type { StreamPromise } from "@holdpoint/schemas";
import { randomUUID } from "node:crypto";
import { CommandService } from "./command-service.ts";
import { Coordinator } from "./coordinator.ts";
import { weaknessesOf } from "./durability.ts";
import { endpointsOf } from "./endpoints.ts";
import { FoldSnapshots } from "./fold-snapshot.ts";
import { noteOf } from "./journal.ts";
import { natsSigns } from "./leader-signs.ts";
import { Settings } from "./settings.ts";
import { StallGuard } from "./stall-guard.ts";
import { openTelemetry } from "./telemetry.ts";

/** How long a request may have waited before it is handed over, in milliseconds: less than anybody waits for an outcome. */
const patienceMs = 2_000;
/** Between two proofs that requests do not wait, in milliseconds. */
const proveEveryMs = 250;
/** How long a request is tried to be stored, in milliseconds: as long as who asks waits for an answer, unless told otherwise. */
const storeWithinMs = 5_000;

/** Serves commands as requests, whoever leads. */
async function serveCommands(run: string, connections: RunConnections): Promise<[CommandService, RunningService]> {
  const { connection, log } = connections;
  const guard = await watchStalls(connections);
  const commands = new CommandService({
    run,
    publish: (draft, signal) => publishCommand(connection, run, draft, signal),
    lastOn: (subject) => log.lastOn(subject),
    newMessageId: randomUUID,
    isPrompt: () => guard.isPrompt(),
    storeWithinMs,
  });
  const service = await serve(connection, {
    name: "holdpoint-coordinator",
    version: "0.1.0",
    description: `Checkpoint and restore of the run ${run}`,
    metadata: { run },
    endpoints: endpointsOf(run, (operation, body, traceparent) => commands.obey(operation, body, traceparent)),
  });
  return [commands, service];
}

/** A guard that is asked to prove itself for as long as the process lives. */
async function watchStalls({ connection }: RunConnections): Promise<StallGuard> {
  const guard = new StallGuard({
    clock: () => Date.now(), // goes on while the machine sleeps
    roundTrip: () => connection.roundTrip(),
    patienceMs,
  });
  setInterval(() => void guard.prove(), proveEveryMs).unref();
  connection.onStatus(({ type }) => void (type === "connected" && guard.prove()));
  await guard.prove();
  return guard;
}

/** Ends the process where the coordinator cannot go on; until it is told to stop. */
async function coordinate(coordinator: Coordinator, { logger }: RunConnections): Promise<void> {
  try {
    await coordinator.run();
  } catch (error) {
    logger.error({ err: error }, "the coordinator cannot go on");
    process.exit(exitCodes.failed);
  }
}

const standings = {
  leads: "coordinator leads",
  "stands by": "coordinator stands by",
  superseded: "another coordinator has taken over; this one stands by",
} as const;

function placeOf({ state: { sequence, phase }, foldedFrom }: Coordinator) {
  return { sequence, phase, foldedFrom };
}

/** What the broker refuses us, and what goes wrong where nobody awaits it. */
function tellOfFaults({ connection, logger }: RunConnections): void {
  connection.onStatus((status) => {
    if (status.type === "fault") logger.warn({ err: status.error }, "trouble on the connection to the broker");
  });
}

/** @throws HoldpointError `unavailable` where the stream promises too little */
async function promiseOf(settings: Settings, { connection, logger }: RunConnections): Promise<StreamPromise> {
  const { HOLDPOINT_RUN: run, HOLDPOINT_MONITOR_URL: monitorUrl } = settings;
  const allowWeak = settings.HOLDPOINT_ALLOW_WEAK === "yes";
  await ensureStream(connection, run, { allowWeak });
  const promise = await streamPromise(connection, run, monitorUrl === undefined ? {} : { monitorUrl });
  for (const weakness of weaknessesOf(promise, allowWeak)) logger.warn({ promise }, weakness);
  return promise;
}

await runProcess(async () => {
  const settings = readSettings(Settings, process.env);
  const { HOLDPOINT_RUN: run } = settings;
  const connections = await connectToRun("coordinator", settings);
  const { connection, log, logger, incarnation } = connections;
  tellOfFaults(connections);
  const telemetry = await openTelemetry(settings, connections);
  const promise = await promiseOf(settings, connections);
  const [commands, service] = await serveCommands(run, connections);
  const coordinator = new Coordinator({
    run,
    log,
    incarnation,
    promise,
    signs: natsSigns(connection, run),
    snapshots: new FoldSnapshots({ log, store: openSnapshots(connection, run), hash: sha256 }),
    leaseGraceMs: settings.HOLDPOINT_LEASE_GRACE_MS,
    clock: () => Date.now(),
    hash: sha256,
    ...(telemetry !== undefined && { observe: telemetry.observe }),
    seen: (message) => commands.seen(message),
    decided: ({ sequence }, decision) => logger.info({ sequence, ...noteOf(decision) }, "decided"),
    heard: (leader, sign) => logger.debug({ leader, sign }, "asked whether the leader lives"),
    stands: ({ status, leader }) => logger.info({ leader, ...placeOf(coordinator) }, standings[status]),
  });
  telemetry?.watch(coordinator);
  void coordinate(coordinator, connections);
  return {
    stop: async () => {
      await service.stop();
      await coordinator.stop();
      await telemetry?.stop();
      await connection.drain();
      logger.info("coordinator stopped");
    },
  };
}, "coordinator");
