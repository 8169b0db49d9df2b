export { agentSpec, runAgent, serveAgent } from "./run-agent.ts";
export type { AgentDefinition } from "./agent-definition.ts";
export type { AgentParticipant, AgentState } from "./agent-state.ts";
export type { AgentSession, ReboundSession, SeededSession } from "./agent-session.ts";
export { type ChatRequest, messageText, type ModelMessage } from "./chat.ts";
export { type AgentInput, defineAgent } from "./define-agent.ts";
export { defineOpaqueAgent, type HarnessSession, type OpaqueAgentInput } from "./define-opaque-agent.ts";
export type { Harness } from "./harness.ts";
export type { Slot } from "./slot-keeper.ts";
