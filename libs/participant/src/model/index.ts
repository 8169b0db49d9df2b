/** Model servers: OpenAI's chat completions, with a ledger of the calls of each episode. */
export type { AssistantMessage, ChatMessage } from "./chat-message.ts";
export {
  defineModel,
  type ModelDefinition,
  type ModelInput,
  type ModelMode,
  type ModelRun,
  type Policies,
  type Policy,
  type PolicyReply,
  type ReplyOptions,
} from "./define-model.ts";
export { HttpServer } from "./http-server.ts";
export type { Model } from "./model.ts";
export { modelSettings, runModel } from "./run-model.ts";
export { modelSpec, serveJudge, serveModel, type ServeModelOptions } from "./serve-model.ts";
