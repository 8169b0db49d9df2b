/** Environments: they own where each episode stands. */
export {
  defineEnvironment,
  type EnvironmentDefinition,
  type EnvironmentInput,
  type EnvironmentMode,
  type EpisodeRun,
  type EpisodeSteps,
  type Outcome,
  type Seeds,
  type Verdict,
} from "./define-environment.ts";
export type { Environment } from "./environment.ts";
export { environmentSpec, runEnvironment, serveEnvironment } from "./run-environment.ts";
