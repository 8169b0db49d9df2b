/** The environment: it owns the position of every episode. Wiring, and nothing else. */
import { episodeKind } from "@holdpoint/episode";
import { eventSchema } from "@holdpoint/eventsourcing";
import { connectToRun, openParticipant, ProcessSettings, readSettings, runProcess } from "@holdpoint/participant";
import { logEvents } from "@holdpoint/schemas";
import { EnvironmentServer } from "./server.ts";

await runProcess(async () => {
  const run = await connectToRun("environment", readSettings(ProcessSettings, process.env));
  const participant = await openParticipant(run, {
    role: "environment",
    mode: "exported",
    kind: episodeKind,
    schema: eventSchema(logEvents.environment),
  });
  const server = new EnvironmentServer(participant, run.logger);
  await server.start();
  run.logger.info({ episodes: participant.sessions.all().length }, "environment serves");
  return {
    stop: async () => {
      await participant.stop();
      await run.connection.close();
    },
  };
}, "environment");
