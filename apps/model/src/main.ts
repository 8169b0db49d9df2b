/** The model server: the policy behind OpenAI's chat completions, with a ledger of its calls. Wiring, and nothing else. */
import { connectToRun, exitCodes, openParticipant, readSettings, runProcess } from "@holdpoint/participant";
import { HttpServer } from "./http-server.ts";
import { modelSpec, serveModel } from "./model-server.ts";
import { readScript } from "./policies.ts";
import { ModelSettings } from "./settings.ts";

await runProcess(async () => {
  const settings = readSettings(ModelSettings, process.env);
  const file = settings.HOLDPOINT_SCRIPT_FILE;
  const script = file === undefined ? undefined : await readScript(file);
  const connections = await connectToRun("model", settings);
  const { log, blobs, logger, connection } = connections;
  const http = await HttpServer.listen(settings.HOLDPOINT_MODEL_HOST, settings.HOLDPOINT_MODEL_PORT);
  const model = await openParticipant(connections, modelSpec, http.url);
  const server = await serveModel({
    model,
    http,
    log,
    blobs,
    logger,
    script,
    run: settings.HOLDPOINT_RUN,
    holdMs: settings.HOLDPOINT_HOLD_MS,
    policyWaitMs: settings.HOLDPOINT_POLICY_WAIT_MS,
    lost: (error) => {
      logger.error({ err: error }, "the log can no longer be followed; this process stops");
      process.exit(exitCodes.failed);
    },
  });
  logger.info({ url: http.url, sessions: model.sessions.all().length }, "model serves");
  return {
    stop: async () => {
      await server.stop();
      await connection.close();
    },
  };
}, "model");
