/** How a model server is written: its policies, by the names that requests ask for. */
import type { BlobStore, EventLog } from "@holdpoint/eventsourcing";
import type { Json } from "@holdpoint/schemas";
import * as z from "zod";
import { checkDefinition, Hook, type ModeChoice } from "../definition.ts";
import type { AssistantMessage, ChatMessage } from "./chat-message.ts";

/** What a policy is asked with, beside the messages. */
export interface ReplyOptions {
  /** An integer of [0, 2^32), the same for every attempt of a rollout: who draws by it says the same when it is asked again. */
  readonly seed: number;
  /** Aborted when the attempt was retired: nobody will ask for this call. */
  readonly signal: AbortSignal;
  /** The whole request as it came, such as for its tools and its temperature. */
  readonly request: Readonly<Record<string, unknown>>;
}

export interface PolicyReply {
  readonly message: AssistantMessage;
  /** What a trainer needs of this call; made durable before the call counts. Absent or null: nothing. */
  readonly staging?: Json | object | null;
  /** Absent: words and single signs are counted. */
  readonly tokens?: { readonly prompt: number; readonly completion: number };
}

/** One version of a policy. */
export interface Policy {
  readonly version: number;
  /**
   * Called once for each call, whoever asks again for it. One that takes long should let the event loop turn.
   *
   * @throws HoldpointError what the caller is told, of `invalid_request`, `not_found`, `unauthorized`, `unavailable`,
   *   `deadline_exceeded` or `invalid_checkpoint_state`: `unavailable` has it ask again. Anything else that is thrown, also late, where
   *   nobody catches it, is told as `invalid_request`, which ends what the caller is about
   */
  reply(messages: readonly ChatMessage[], options: ReplyOptions): PolicyReply | Promise<PolicyReply>;
}

export interface Policies {
  /** The names that can be asked for now. */
  names(): readonly string[];
  /**
   * The policy called `name`; may wait for it.
   *
   * @throws HoldpointError `not_found` where there is none, `unavailable` where it is worth while to ask again
   */
  find(name: string, signal: AbortSignal): Promise<Policy>;
  /** The server stops. */
  stop?(): Promise<void>;
  /** Rejects where the policies can be served no more: the process ends, and has to be started again. */
  readonly ended?: Promise<void>;
}

/** The run that a model server takes part in. */
export interface ModelRun {
  readonly run: string;
  readonly log: EventLog;
  readonly blobs: BlobStore;
}

export const modelModes = ["exported", "restart_only"] as const;
export type ModelMode = (typeof modelModes)[number];

export interface ModelInput {
  /** For messages. */
  readonly name: string;
  /**
   * `exported`: checkpoints hold the ledger of its calls. Default `restart_only`: none does, and each episode that calls it starts
   * over after a restore.
   */
  readonly mode?: ModeChoice<ModelMode>;
  /** Or how they are made when the server starts, such as from what the trainer has published in the log. */
  readonly policies: Policies | ((run: ModelRun) => Promise<Policies>);
}

/** A model server, for `runModel` and `serveModel`. */
export interface ModelDefinition {
  readonly name: string;
  readonly mode: ModeChoice<ModelMode>;
  /** @throws HoldpointError `invalid_request` where what is made are no policies */
  readonly policies: (run: ModelRun) => Promise<Policies>;
}

const PoliciesShape = z.custom<Policies>(
  (value) => z.looseObject({ names: Hook, find: Hook, stop: Hook.optional() }).safeParse(value).success,
  { error: "expected { names, find, stop? }, each a function" },
);

const Shape = z.strictObject({
  name: z.string().min(1),
  mode: z
    .union([z.enum(modelModes), Hook], {
      error: `expected "exported", "restart_only", or a function that finds which; a model has a ledger, so it is never stateless`,
    })
    .optional(),
  policies: z.union([Hook, PoliciesShape], {
    error: "expected { names, find, stop? }, each a function, or a function that makes it",
  }),
});

/**
 * Defines a policy model server. Each call of it is made once, is in the ledger before it is answered, and is answered from there
 * for ever after; `policies` knows nothing of that.
 *
 * A run has exactly one. A judge, a user simulator or any other model is no participant: it holds nothing of an episode, and serves
 * on while a checkpoint is open. `serveJudge` serves one from the same policies.
 *
 * @throws HoldpointError `invalid_request` that names what is wrong with the definition
 */
export function defineModel(input: ModelInput): ModelDefinition {
  checkDefinition("defineModel", Shape, input);
  const { name, mode = "restart_only", policies: given } = input;
  return {
    name,
    mode,
    policies: async (run) => {
      const policies = typeof given === "function" ? await given(run) : given;
      checkDefinition("defineModel", z.object({ policies: PoliciesShape }), { name, policies });
      return policies;
    },
  };
}
