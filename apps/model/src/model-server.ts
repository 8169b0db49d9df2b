/** The model server's parts, put together around a participant that was opened. */
import type { BlobStore, EventLog } from "@holdpoint/eventsourcing";
import { type Ledger, type LedgerEvent, ledgerKind } from "@holdpoint/ledger";
import { type RoleSpec, sha256 } from "@holdpoint/participant";
import { eventSchema } from "@holdpoint/eventsourcing";
import { logEvents } from "@holdpoint/schemas";
import type { Logger } from "@holdpoint/telemetry";
import { apiOf } from "./api.ts";
import { followEndings } from "./endings.ts";
import type { HttpServer } from "./http-server.ts";
import { ModelCalls } from "./model-calls.ts";
import type { Model } from "./model.ts";
import { Policies, type Script } from "./policies.ts";
import { markIncomplete } from "./staged.ts";
import { Weights } from "./weights.ts";

/** The sessions of a model server are the ledgers of episodes. */
export const modelSpec: RoleSpec<Ledger, LedgerEvent> = {
  role: "model",
  mode: "exported",
  kind: ledgerKind(sha256),
  schema: eventSchema(logEvents.model),
};

export interface ModelServerOptions {
  readonly model: Model;
  readonly http: HttpServer;
  readonly log: EventLog;
  readonly blobs: BlobStore;
  readonly run: string;
  readonly logger: Logger;
  /** What `scripted` says; undefined: there is no such policy. */
  readonly script: Script | undefined;
  /** Milliseconds that a caller who knows nothing of checkpoints is held for. */
  readonly holdMs: number;
  /** Milliseconds that a call waits for a version of the policy that is not published yet. */
  readonly policyWaitMs: number;
  /** Called where the log can no longer be followed. */
  readonly lost: (error: unknown) => void;
}

/** Serves; what was in the making before a crash is made again when its caller asks again. */
export async function serveModel(options: ModelServerOptions): Promise<{ stop(): Promise<void> }> {
  const { model, http, log, blobs, run, logger, script, holdMs, policyWaitMs, lost } = options;
  const weights = await Weights.follow({ log, blobs, run, waitMs: policyWaitMs });
  const policies = new Policies(weights, script);
  const calls = new ModelCalls({ model, policies, holdMs });
  await model.serve({
    methods: {},
    hooks: {
      restore: (sessions, signal) => markIncomplete(sessions, blobs, signal),
      retire: (marks) => calls.retire(marks).then(() => []),
    },
  });
  const endings = await followEndings(model, log, run);
  for (const { ended } of [weights, endings]) ended.catch(lost);
  http.serve(apiOf({ calls, policies, logger }));
  return {
    stop: async () => {
      for (const part of [http, endings, weights, model]) await part.stop();
    },
  };
}
