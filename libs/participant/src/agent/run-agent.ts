/** An agent as a process of a run, and without one. */
import { eventSchema } from "@holdpoint/eventsourcing";
import { logEvents, Mode, Token } from "@holdpoint/schemas";
import * as z from "zod";
import { chosenMode } from "../definition.ts";
import { sha256 } from "../hash.ts";
import { connectToRun, openParticipant, processSettings, readSettings, runProcess } from "../process.ts";
import type { RoleSpec } from "../role-spec.ts";
import type { AgentDefinition } from "./agent-definition.ts";
import { agentKind, type AgentLogEvent, type AgentParticipant, type AgentState } from "./agent-state.ts";
import { AgentServer, type AgentServing } from "./server.ts";

const Settings = z.object({
  ...processSettings,
  /** The instance of the resources server whose tools are called. */
  HOLDPOINT_RESOURCES: Token.default("main"),
});

/**
 * With what the participant of an agent is opened: its mode is found here.
 *
 * @throws HoldpointError `invalid_request` where the definition finds none
 */
export async function agentSpec(definition: AgentDefinition): Promise<RoleSpec<AgentState, AgentLogEvent>> {
  const { name, mode, isOpaque } = definition;
  return {
    role: "agent",
    mode: await chosenMode(`agent ${name}`, mode, Mode.options),
    kind: agentKind(sha256, { isOpaque }),
    schema: eventSchema(logEvents.agent),
  };
}

/**
 * Serves around a participant that was opened with `agentSpec`: goes on with its activations, and takes new sessions.
 */
export async function serveAgent(
  definition: AgentDefinition,
  agent: AgentParticipant,
  serving: AgentServing = {},
): Promise<{ stop(): Promise<void> }> {
  await new AgentServer({ ...serving, definition, agent }).start();
  return { stop: () => agent.stop() };
}

/** Runs an agent as a process, until it is told to stop: the whole of its `main.ts`. */
export async function runAgent(definition: AgentDefinition): Promise<void> {
  await runProcess(async () => {
    const settings = readSettings(Settings, process.env);
    const run = await connectToRun("agent", settings);
    const agent = await openParticipant(run, await agentSpec(definition));
    const server = await serveAgent(definition, agent, { resources: settings.HOLDPOINT_RESOURCES });
    run.logger.info({ sessions: agent.sessions.all().length }, "agent serves");
    return {
      stop: async () => {
        await server.stop();
        await run.connection.close();
      },
    };
  }, "agent");
}
