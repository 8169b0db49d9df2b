/** The policies of the repair workload, by the name of the model that a request asks for. */
import { HoldpointError } from "@holdpoint/errors";
import {
  type ChatMessage,
  defineModel,
  type ModelDefinition,
  type Policies,
  type Policy,
} from "@holdpoint/participant";
import { ChatMessage as RepairMessage, policyReply, type PolicyReply, scriptedReply } from "@holdpoint/repair";
import * as z from "zod";
import type { Script } from "./script.ts";
import { Turnstile } from "./turnstile.ts";
import { Weights } from "./weights.ts";

export interface RepairModelOptions {
  /** Milliseconds that a call waits for a version of the policy that is not published yet. */
  readonly waitMs: number;
  /** What `scripted` says; undefined: there is no such policy. */
  readonly script: Script | undefined;
}

/** `softmax@<version>` for each version that the trainer has published, and `scripted` where there is a script. */
export function repairModel({ waitMs, script }: RepairModelOptions): ModelDefinition {
  return defineModel({
    name: "repair",
    mode: "exported",
    policies: async (run) => new RepairPolicies(await Weights.follow({ ...run, waitMs }), script),
  });
}

const Messages = z.array(RepairMessage);

class RepairPolicies implements Policies {
  readonly #weights: Weights;
  readonly #script: Script | undefined;
  readonly #turnstile = new Turnstile();

  constructor(weights: Weights, script: Script | undefined) {
    this.#weights = weights;
    this.#script = script;
  }

  names(): readonly string[] {
    const versions = this.#weights.versions.map((version) => `softmax@${version}`);
    return this.#script === undefined ? versions : [...versions, "scripted"];
  }

  /** Waits for a version that is not published yet. */
  async find(name: string, signal: AbortSignal): Promise<Policy> {
    const version = /^softmax@(0|[1-9]\d{0,8})$/.exec(name)?.[1];
    if (version !== undefined) return this.#softmax(Number(version), signal);
    const script = this.#script;
    if (name !== "scripted" || script === undefined) throw this.#unknown(name);
    return this.#policy(0, (messages) => scriptedReply(script, messages));
  }

  get ended(): Promise<void> {
    return this.#weights.ended;
  }

  async stop(): Promise<void> {
    await this.#weights.stop();
  }

  async #softmax(version: number, signal: AbortSignal): Promise<Policy> {
    const weights = await this.#weights.of(version, signal);
    return this.#policy(version, (messages, seed) => policyReply({ weights, messages, seed }));
  }

  /** What it says is a function of the messages and the seed alone, and takes milliseconds of this process. */
  #policy(version: number, reply: (messages: readonly RepairMessage[], seed: number) => PolicyReply): Policy {
    return {
      version,
      reply: (messages, { seed }) => this.#turnstile.run(() => reply(repairMessages(messages), seed)),
    };
  }

  #unknown(name: string): HoldpointError {
    const known = this.names().slice(-8).join(", ");
    return new HoldpointError(
      "not_found",
      `no model ${JSON.stringify(name.slice(0, 80))}; there are, for example, ${known}`,
    );
  }
}

/** @throws HoldpointError `invalid_request` where one of them is of a kind that the repair workload does not have */
function repairMessages(messages: readonly ChatMessage[]): readonly RepairMessage[] {
  const parsed = Messages.safeParse(messages);
  if (parsed.success) return parsed.data;
  throw new HoldpointError("invalid_request", z.prettifyError(parsed.error));
}
