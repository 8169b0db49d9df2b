export { AssistantMessage, callTools, ChatMessage, textOf, ToolCall, turnOf } from "./chat.ts";
export { featureNames } from "./features.ts";
export { packageNamed, packages, type PackageSpec, testArguments, testCpuSeconds } from "./packages.ts";
export { type PlannedGroup, type PlanOptions, planRun } from "./plan.ts";
export { type Assignment, promptOf, readPrompt } from "./prompt.ts";
export { type Random, randomOf, seedFrom, seedOf } from "./random.ts";
export {
  advantagesOf,
  defaultLearningRate,
  reinforce,
  type ReinforceOptions,
  type TrainedGroup,
  type TrainedRollout,
  weightsDigest,
} from "./reinforce.ts";
export { scriptedReply, type ScriptedCall } from "./scripted-policy.ts";
export { flip, flipOf, type Site, type SiteKind, siteKinds, sites } from "./sites.ts";
export {
  initialWeights,
  maxTries,
  type PolicyReply,
  policyReply,
  type PolicyRequest,
  type Staging,
} from "./softmax-policy.ts";
export { breakSource, digestOf, killingSitesOf, Task, taskOf } from "./task.ts";
export {
  allPassed,
  formatReport,
  parseTestReport,
  readReport,
  rewardOf,
  type TestFailure,
  type TestReport,
} from "./test-report.ts";
export {
  applyEdit,
  type Edited,
  isToolFailure,
  isToolName,
  type LineEdit,
  toolArguments,
  toolDefinitions,
  toolFailure,
  type ToolName,
  toolNames,
} from "./tools.ts";
