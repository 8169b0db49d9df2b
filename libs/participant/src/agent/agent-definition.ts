/** An agent as it is served, however it was written: what `defineAgent` and `defineOpaqueAgent` make. */
import { HoldpointError } from "@holdpoint/errors";
import type { Mode } from "@holdpoint/schemas";
import * as z from "zod";
import type { ModeChoice } from "../definition.ts";
import type { ActivationContext } from "./activation.ts";
import type { SeededSession } from "./agent-session.ts";

/** All but the seed, whose type only the definition knows. */
export type UnseededSession = Omit<SeededSession<unknown>, "seed">;

/** An agent, for `runAgent` and `serveAgent`. */
export interface AgentDefinition {
  readonly name: string;
  readonly mode: ModeChoice;
  /** Activations that run at once in one process; undefined: no limit. */
  readonly slots: number | undefined;
  /** Calls are made outside of this process, which sees none of them. */
  readonly isOpaque: boolean;
  /** Whether a replacement attempt may be bound to other things. */
  readonly rebinds: boolean;
  /**
   * The definition's hooks for one seed.
   *
   * @throws HoldpointError `invalid_request` where it is no seed of this agent
   */
  readonly bind: (seed: unknown) => Promise<BoundAgent>;
}

export interface BoundAgent {
  /** Why no checkpoint can hold the session; null where one can. */
  readonly restart: (session: UnseededSession, mode: Mode) => string | null;
  readonly rebind: (session: UnseededSession, previousSeed: unknown) => Promise<void>;
  readonly activate: (context: ActivationContext) => Promise<unknown>;
}

/** @throws HoldpointError `invalid_request` where `given` is no seed of the agent */
export async function parsedSeed<Seed>(name: string, schema: z.ZodType<Seed>, given: unknown): Promise<Seed> {
  const seed = await schema.safeParseAsync(given);
  if (seed.success) return seed.data;
  throw new HoldpointError("invalid_request", `no seed of agent ${name}:\n${z.prettifyError(seed.error)}`);
}

/** @throws HoldpointError `invalid_request` where `given` is not what `capturable` of an agent returns */
export function restartOf(name: string, given: unknown): string | null {
  if (given === true) return null;
  if (typeof given === "string" && given !== "") return given;
  if (given instanceof Promise) given.catch(() => {}); // refused, whatever it comes to
  const found = given instanceof Promise ? "a promise" : (JSON.stringify(given) ?? "undefined");
  throw new HoldpointError(
    "invalid_request",
    `capturable of ${name} returned ${found}; expected true, or in words why no checkpoint can hold the session`,
  );
}

/** The text of a seed in the log. */
export function seedFrom(text: string): unknown {
  const value: unknown = JSON.parse(text);
  return value;
}
