/** The agent: a small tool-calling loop, made checkpointable by the participant SDK. Wiring, and nothing else. */
import { eventSchema } from "@holdpoint/eventsourcing";
import {
  connectToRun,
  openParticipant,
  processSettings,
  readSettings,
  runProcess,
  sha256,
} from "@holdpoint/participant";
import { logEvents, Token } from "@holdpoint/schemas";
import * as z from "zod";
import { conversationKind } from "./conversation.ts";
import { AgentServer } from "./server.ts";

const Settings = z.object({
  ...processSettings,
  /** The instance of the resources server whose tools are called. */
  HOLDPOINT_RESOURCES: Token.default("main"),
});

await runProcess(async () => {
  const settings = readSettings(Settings, process.env);
  const run = await connectToRun("agent", settings);
  const agent = await openParticipant(run, {
    role: "agent",
    mode: "exported",
    kind: conversationKind(sha256),
    schema: eventSchema(logEvents.agent),
  });
  await new AgentServer(agent, settings.HOLDPOINT_RESOURCES, run.logger).start();
  run.logger.info({ sessions: agent.sessions.all().length }, "agent serves");
  return {
    stop: async () => {
      await agent.stop();
      await run.connection.close();
    },
  };
}, "agent");
