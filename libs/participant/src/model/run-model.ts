/** A model server as a process of a run. */
import * as z from "zod";
import { connectToRun, exitCodes, openParticipant, processSettings, readSettings, runProcess } from "../process.ts";
import type { ModelDefinition } from "./define-model.ts";
import { HttpServer } from "./http-server.ts";
import { defaultHoldMs, modelSpec, serveModel } from "./serve-model.ts";

/** What the environment tells every model server, for who reads settings of its own beside them. */
export const modelSettings = {
  ...processSettings,
  HOLDPOINT_MODEL_HOST: z.string().min(1).default("127.0.0.1"),
  /** 0: any free port. */
  HOLDPOINT_MODEL_PORT: z.coerce.number().int().min(0).max(65_535).default(0),
  /** Milliseconds that a caller who knows nothing of checkpoints is held for; below its own timeout. */
  HOLDPOINT_HOLD_MS: z.coerce.number().int().nonnegative().default(defaultHoldMs),
};
const ModelSettings = z.object(modelSettings);

/**
 * Runs a model server as a process, until it is told to stop: the whole of its `main.ts`.
 *
 * @param given the definition, or how it is made, such as from settings of its own: what that throws ends the process by name
 */
export async function runModel(given: ModelDefinition | (() => Promise<ModelDefinition>)): Promise<void> {
  await runProcess(async () => {
    const definition = typeof given === "function" ? await given() : given;
    const settings = readSettings(ModelSettings, process.env);
    const connections = await connectToRun("model", settings);
    const { logger, connection } = connections;
    const http = await HttpServer.listen(settings.HOLDPOINT_MODEL_HOST, settings.HOLDPOINT_MODEL_PORT);
    const model = await openParticipant(connections, await modelSpec(definition), http.url);
    const server = await serveModel(definition, model, {
      http,
      logger,
      holdMs: settings.HOLDPOINT_HOLD_MS,
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
}
