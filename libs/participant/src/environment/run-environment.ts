/** An environment as a process of a run, and without one. */
import { eventSchema } from "@holdpoint/eventsourcing";
import { episodeKind, type EpisodeState } from "@holdpoint/episode";
import { type EnvironmentEvent, logEvents } from "@holdpoint/schemas";
import type { Logger } from "@holdpoint/telemetry";
import { chosenMode } from "../definition.ts";
import { connectToRun, openParticipant, ProcessSettings, readSettings, runProcess } from "../process.ts";
import type { RoleSpec } from "../role-spec.ts";
import { type EnvironmentDefinition, environmentModes } from "./define-environment.ts";
import type { Environment } from "./environment.ts";
import { EnvironmentServer } from "./server.ts";

/**
 * With what the participant of an environment is opened: its mode is found here.
 *
 * @throws HoldpointError `invalid_request` where the definition finds a mode that no environment has
 */
export async function environmentSpec({
  name,
  mode,
}: EnvironmentDefinition): Promise<RoleSpec<EpisodeState, EnvironmentEvent>> {
  return {
    role: "environment",
    mode: await chosenMode(`environment ${name}`, mode, environmentModes),
    kind: episodeKind,
    schema: eventSchema(logEvents.environment),
  };
}

/** Serves around a participant that was opened with `environmentSpec`: goes on with its episodes, and takes new ones. */
export async function serveEnvironment(
  definition: EnvironmentDefinition,
  participant: Environment,
  logger: Logger,
): Promise<{ stop(): Promise<void> }> {
  await new EnvironmentServer(definition, participant, logger).start();
  return { stop: () => participant.stop() };
}

/** Runs an environment as a process, until it is told to stop: the whole of its `main.ts`. */
export async function runEnvironment(definition: EnvironmentDefinition): Promise<void> {
  await runProcess(async () => {
    const run = await connectToRun("environment", readSettings(ProcessSettings, process.env));
    const participant = await openParticipant(run, await environmentSpec(definition));
    const server = await serveEnvironment(definition, participant, run.logger);
    run.logger.info({ episodes: participant.sessions.all().length }, "environment serves");
    return {
      stop: async () => {
        await server.stop();
        await run.connection.close();
      },
    };
  }, "environment");
}
