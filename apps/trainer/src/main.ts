/** The trainer's process: what it knows of its run, and where it goes on from. Wiring, and nothing else. */
import { Controller } from "@holdpoint/client";
import {
  connectToRun,
  exitCodeOf,
  exitCodes,
  LogWriter,
  readSettings,
  type RunConnections,
  runProcess,
  streamMade,
} from "@holdpoint/participant";
import { resumeLeftOpen } from "./commanding.ts";
import { Consumption } from "./consumption.ts";
import type { TrainerContext } from "./context.ts";
import { Dispatcher } from "./dispatcher.ts";
import { groupsOf } from "./next-step.ts";
import { Publications, type TrainerLogEvent } from "./publications.ts";
import { goBack } from "./restoring.ts";
import { readRun, RunView } from "./run-view.ts";
import { planOf, TrainerSettings } from "./settings.ts";
import { StateDir } from "./state-dir.ts";
import { requireSamePlan, requireSameStream, requireSameTasks } from "./same-run.ts";
import { firstState, type TrainerState } from "./state.ts";
import { Trainer } from "./trainer.ts";

/** How long to wait for a coordinator to make the run's stream. */
const streamPatienceMs = 60_000;

await runProcess(async () => {
  const settings = readSettings(TrainerSettings, process.env);
  const groups = groupsOf(planOf(settings));
  const connections = await connectToRun("trainer", settings);
  let stopping = false;
  train(connections, settings, groups).then(
    () => process.exit(exitCodes.ok),
    (error: unknown) => {
      if (stopping) return;
      connections.logger.error({ err: error }, "the trainer stops");
      process.exit(exitCodeOf(error));
    },
  );
  return {
    stop: async () => {
      stopping = true;
      await connections.connection.close();
    },
  };
}, "trainer");

async function train(
  connections: RunConnections,
  settings: TrainerSettings,
  groups: TrainerContext["groups"],
): Promise<void> {
  const { log, logger, incarnation } = connections;
  const dir = await StateDir.open(settings.HOLDPOINT_STATE_DIR, incarnation);
  // Before the log is claimed: a trainer of another plan fences nobody.
  const found = await dir.load();
  if (found !== undefined) requireSamePlan(found.plan, planOf(settings));
  if (settings.HOLDPOINT_RESTORE === undefined && (await dir.final()) !== undefined) {
    logger.info("the run has ended: final.json says what came of it");
    return;
  }
  const context = await openContext(connections, { settings, groups, dir });
  const publications = await Publications.read(log, context.run, await log.lastSequence());
  await resumeLeftOpen(context);
  const state = await stateToGoOnFrom(context, publications);
  const { run, view } = context;
  const { connection } = connections;
  const instance = settings.HOLDPOINT_INSTANCE;
  const failed = (error: unknown) => view.fail(error);
  const consumption = await Consumption.open({ connection, run, instance, cursor: state.cursor, failed });
  const dispatcher = new Dispatcher({
    messenger: connection,
    run,
    view,
    seed: settings.HOLDPOINT_SEED,
    budgetMs: settings.HOLDPOINT_BUDGET_MS ?? null,
    trouble: (what, error) => logger.warn({ err: error }, what),
  });
  const trainer = new Trainer({ context, dispatcher, consumption, publications, state, clock: now });
  const { weightsDigest, version } = await trainer.run();
  logger.info({ weightsDigest, version }, "the run has ended");
}

function now(): number {
  return performance.now();
}

/** Reads the run, takes over the trainer's log, which fences the trainer before this one, and follows the run. */
async function openContext(
  connections: RunConnections,
  parts: Pick<TrainerContext, "settings" | "groups" | "dir">,
): Promise<TrainerContext> {
  const { connection, log, blobs, logger } = connections;
  const run = parts.settings.HOLDPOINT_RUN;
  await streamMade(log, logger, { patienceMs: streamPatienceMs });
  const view = new RunView(log.stream, run, (what) => logger.warn({ what }, "cannot be read"));
  const known = await readRun(log, run, view);
  requireSameTasks(view, parts.groups, planOf(parts.settings)); // a trainer of another plan fences nobody
  const writer = await claim(connections, await parts.dir.load());
  const end = await readRun(log, run, view, known + 1); // what the trainer before this one has caused up to its fence
  const tail = await log.tail({ from: end + 1, subjects: RunView.subjects(run) }, (message) => view.take(message));
  tail.ended.catch((error: unknown) => view.fail(error));
  const say = async (events: readonly TrainerLogEvent[]) => void (await writer.record(events));
  const controller = new Controller({ connection, log, run });
  return { ...parts, run, log, blobs, view, logger, controller, say };
}

/** Its first word is from where it goes on, as far as that was saved when it started. */
async function claim(
  { log, logger, incarnation, settings }: RunConnections,
  saved: TrainerState | undefined,
): Promise<LogWriter<TrainerLogEvent>> {
  const { HOLDPOINT_RUN: run, HOLDPOINT_INSTANCE: instance, HOLDPOINT_WORKER: worker } = settings;
  const { writer } = await LogWriter.claim<TrainerLogEvent>(
    {
      log,
      run,
      writer: { role: "trainer", instance, worker },
      incarnation,
      now: () => Date.now(),
      applied: () => {},
      fenced: () => {
        logger.error("another trainer has taken over; this one stops");
        process.exit(exitCodes.fenced);
      },
    },
    () => ({
      type: "trainer.saved",
      data: { checkpointId: null, version: saved?.version ?? 0, cursor: saved?.cursor ?? 0 },
    }),
  );
  return writer;
}

/** The saved state, read after the trainer before this one was fenced; or that of a checkpoint. */
async function stateToGoOnFrom(context: TrainerContext, publications: Publications): Promise<TrainerState> {
  const { settings, dir, log, say } = context;
  const plan = planOf(settings);
  const wanted = settings.HOLDPOINT_RESTORE;
  const saved = (await dir.load()) ?? { ...firstState(plan), taken: [...publications.checkpoints] };
  if (wanted === undefined) {
    requireSamePlan(saved.plan, plan);
    await requireSameStream(log, saved);
    return saved;
  }
  const { checkpointId, state: older } = await goBack(context, wanted);
  const state = { ...older, taken: saved.taken };
  await dir.removeFinal();
  await dir.save(state);
  const { version, cursor } = state;
  await say([{ type: "trainer.saved", data: { checkpointId, version, cursor } }]);
  return state;
}
