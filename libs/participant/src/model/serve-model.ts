/** A model server around a participant that was opened, and a judge without one. */
import { eventSchema } from "@holdpoint/eventsourcing";
import { type Ledger, type LedgerEvent, ledgerKind } from "@holdpoint/ledger";
import { logEvents } from "@holdpoint/schemas";
import type { Logger } from "@holdpoint/telemetry";
import { chosenMode } from "../definition.ts";
import { sha256 } from "../hash.ts";
import type { RoleSpec } from "../role-spec.ts";
import { apiOf, completeCall } from "./api.ts";
import { type ModelDefinition, modelModes, type Policies } from "./define-model.ts";
import { followEndings } from "./endings.ts";
import type { HttpServer } from "./http-server.ts";
import { judgeCall } from "./judging.ts";
import { ModelCalls } from "./model-calls.ts";
import type { Model } from "./model.ts";
import type { Caller } from "./replied.ts";
import { markIncomplete } from "./staged.ts";

/** Milliseconds that a caller who knows nothing of checkpoints is held for, where nothing else is said. */
export const defaultHoldMs = 25_000;

/**
 * With what the participant of a model server is opened: its mode is found here. Its sessions are the ledgers of episodes.
 *
 * @throws HoldpointError `invalid_request` where the definition finds a mode that no model has
 */
export async function modelSpec({ name, mode }: ModelDefinition): Promise<RoleSpec<Ledger, LedgerEvent>> {
  return {
    role: "model",
    mode: await chosenMode(`model ${name}`, mode, modelModes),
    kind: ledgerKind(sha256),
    schema: eventSchema(logEvents.model),
  };
}

export interface ServeModelOptions {
  /** Its URL is the endpoint that the participant was opened with. */
  readonly http: HttpServer;
  readonly logger: Logger;
  /** Milliseconds that a caller who knows nothing of checkpoints is held for; below its own timeout. Default: 25,000. */
  readonly holdMs?: number;
  /** Called where the log, or what the policies need of it, can no longer be followed. */
  readonly lost: (error: unknown) => void;
}

/**
 * Serves around a participant that was opened with `modelSpec`. What was in the making before a crash is made again when its caller
 * asks again.
 */
export async function serveModel(
  definition: ModelDefinition,
  model: Model,
  { http, logger, holdMs = defaultHoldMs, lost }: ServeModelOptions,
): Promise<{ stop(): Promise<void> }> {
  const { run, log, blobs } = model.options;
  const policies = await definition.policies({ run, log, blobs });
  const calls = new ModelCalls({ model, policies, holdMs });
  await model.serve({
    methods: {},
    hooks: {
      restore: (sessions, signal) => markIncomplete(sessions, blobs, signal),
      retire: (marks) => calls.retire(marks).then(() => []),
    },
  });
  const endings = await followEndings(model, calls, log);
  endings.ended.catch(lost);
  policies.ended?.catch(lost);
  http.serve(apiOf({ complete: (call) => completeCall(calls, call), policies, logger }));
  return {
    stop: async () => {
      for (const part of [http, endings]) await part.stop();
      await policies.stop?.();
      await model.stop();
    },
  };
}

/**
 * Serves policies as a judge, a user simulator, or whatever else is no policy model: over the same routes, for callers that say
 * nothing of themselves. No participant and no ledger: no checkpoint holds it up, and a call that is repeated is made again.
 *
 * @param http listens already; whoever made it stops it
 */
export function serveJudge(policies: Policies, { http, logger }: Pick<ServeModelOptions, "http" | "logger">): void {
  const trouble: Caller["trouble"] = (what, error, about) => logger.error({ err: error, what, ...about }, "trouble");
  http.serve(apiOf({ complete: (call) => judgeCall({ policies, trouble }, call), policies, logger }));
}
