/** What authors of a resources server need. */
export { Bench, Benches } from "./bench.ts";
export {
  type ResourcesDefinition,
  tool,
  type ToolCallOf,
  type ToolDefinition,
  type ToolOutcome,
  type VerdictOf,
  type Verification,
} from "./definition.ts";
export { defineResources, type Resources } from "./define-resources.ts";
export type { ExternalState, Release, SessionName, Unneeded } from "./external-hooks.ts";
export { canonicalJson, liveSessions, pendingSessions, refuseBeside, sessionOver } from "../live-sessions.ts";
export type { McpAddress } from "./mcp-edge.ts";
export { runResources } from "./running.ts";
export { resourcesSpec, type ServedResources, serveResources, type ServingOptions } from "./serving.ts";
