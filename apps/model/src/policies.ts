/** The policies that are served, by the name of the model that a request asks for. */
import { HoldpointError } from "@holdpoint/errors";
import {
  type ChatMessage,
  type PolicyReply,
  policyReply,
  type ScriptedCall,
  scriptedReply,
  toolNames,
} from "@holdpoint/repair";
import { readFile } from "node:fs/promises";
import * as z from "zod";
import type { Weights } from "./weights.ts";

/** One version of a policy: what it says is a function of the messages and the seed alone. */
export interface Policy {
  readonly version: number;
  reply(messages: readonly ChatMessage[], seed: number): PolicyReply;
}

export type Script = readonly (readonly ScriptedCall[])[];

export class Policies {
  readonly #weights: Weights;
  readonly #script: Script | undefined;

  /** @param script what `scripted` says; undefined: there is no such policy */
  constructor(weights: Weights, script: Script | undefined) {
    this.#weights = weights;
    this.#script = script;
  }

  /** The names that can be asked for now. */
  get names(): readonly string[] {
    const versions = this.#weights.versions.map((version) => `softmax@${version}`);
    return this.#script === undefined ? versions : [...versions, "scripted"];
  }

  /**
   * The policy called `name`; waits for a version that is not published yet.
   *
   * @throws HoldpointError `not_found` where there is no such policy; `unavailable` where its version is not published in time
   */
  async find(name: string, signal: AbortSignal): Promise<Policy> {
    const version = /^softmax@(0|[1-9]\d{0,8})$/.exec(name)?.[1];
    if (version !== undefined) return this.#softmax(Number(version), signal);
    const script = this.#script;
    if (name !== "scripted" || script === undefined) throw this.#unknown(name);
    return { version: 0, reply: (messages) => scriptedReply(script, messages) };
  }

  async #softmax(version: number, signal: AbortSignal): Promise<Policy> {
    const weights = await this.#weights.of(version, signal);
    return { version, reply: (messages, seed) => policyReply({ weights, messages, seed }) };
  }

  #unknown(name: string): HoldpointError {
    const known = this.names.slice(-8).join(", ");
    return new HoldpointError(
      "not_found",
      `no model ${JSON.stringify(name.slice(0, 80))}; there are, for example, ${known}`,
    );
  }
}

const ScriptFile = z.array(z.array(z.object({ name: z.enum(toolNames), arguments: z.record(z.string(), z.json()) })));

/**
 * The script in a file: a JSON array with, for each turn, an array of tool calls `{name, arguments}`.
 *
 * @throws HoldpointError `invalid_request` where the file cannot be read, or holds no script
 */
export async function readScript(path: string): Promise<Script> {
  try {
    return ScriptFile.parse(JSON.parse(await readFile(path, "utf8")));
  } catch (cause) {
    const why = cause instanceof z.ZodError ? z.prettifyError(cause) : String(cause);
    const expected = "expected a JSON array with an array of {name, arguments} for each turn";
    throw new HoldpointError("invalid_request", `HOLDPOINT_SCRIPT_FILE ${path}: ${expected}\n${why}`, { cause });
  }
}
