/** How an agent is written: a schema of its seeds, and a plain async function that takes a session from its seed to its output. */
import { HoldpointError } from "@holdpoint/errors";
import { Mode } from "@holdpoint/schemas";
import * as z from "zod";
import { checkDefinition, Hook, hookOf, type ModeChoice, SchemaHook } from "../definition.ts";
import { type AgentDefinition, parsedSeed, restartOf } from "./agent-definition.ts";
import { type AgentSession, agentSession, type ReboundSession, type SeededSession } from "./agent-session.ts";

export interface AgentInput<Seed> {
  /** For messages. */
  readonly name: string;
  /**
   * `exported`: its sessions are in checkpoints. `stateless`: they are, without what boundaries give. Default `restart_only`: none
   * is, and each episode starts over after a restore.
   */
  readonly mode?: ModeChoice;
  /** A seed that it refuses is refused as `invalid_request`. */
  readonly seed: z.ZodType<Seed>;
  /** Activations that run at once in one process, where they ask for a slot: at least 1. Default: no limit. */
  readonly slots?: number;
  /**
   * A replacement attempt has seeded a restored session, whose access and seed may be others: binds it to them. Once for each attempt;
   * again where it was not known to be done. Absent: the seed has to be the same, and grants that are bound to an attempt make an
   * episode of this agent a restart.
   */
  readonly rebind?: (session: ReboundSession<Seed>) => Promise<void>;
  /** Whether a checkpoint can hold the session, or why none can. Asked when it is seeded. Default: true. */
  readonly capturable?: (session: SeededSession<Seed>) => true | string;
  /**
   * Gives the output. What it throws ends the activation, also late, where nobody catches it: a step's error, and a `HoldpointError` of
   * `invalid_request`, `not_found`, `unauthorized`, `unavailable`, `deadline_exceeded` or `invalid_checkpoint_state`, as it is, and
   * `unavailable` has it tried again; anything else as `invalid_request`, its words in the log of this process.
   */
  readonly activate: (session: AgentSession<Seed>) => Promise<string>;
}

const SessionHook = hookOf("session");

export const definitionMode = z.union([Mode, Hook], {
  error: `expected "exported", "stateless", "restart_only", or a function that finds which`,
});

const Shape = z
  .strictObject({
    name: z.string().min(1),
    mode: definitionMode.optional(),
    seed: SchemaHook,
    slots: z.int().min(1).optional(),
    rebind: SessionHook.optional(),
    capturable: SessionHook.optional(),
    activate: SessionHook,
  })
  .superRefine((given, context) => {
    const { mode = "restart_only", ...rest } = given;
    for (const hook of ["rebind", "capturable"] as const) {
      if (hook in rest && rest[hook] === undefined) context.addIssue(declared(hook));
      else if (mode === "restart_only" && hook in rest) context.addIssue(neverCalled(hook));
    }
  });

/**
 * Defines an agent.
 *
 * @throws HoldpointError `invalid_request` that names what is wrong with the definition
 */
export function defineAgent<Seed>(input: AgentInput<Seed>): AgentDefinition {
  checkDefinition("defineAgent", Shape, input);
  const { name, mode = "restart_only", seed: schema, slots, rebind, capturable, activate } = input;
  return {
    name,
    mode,
    slots,
    isOpaque: false,
    rebinds: rebind !== undefined,
    bind: async (given) => {
      const seed = await parsedSeed(name, schema, given);
      return {
        restart: (session) => (capturable === undefined ? null : restartOf(name, capturable({ ...session, seed }))),
        rebind: async (session, previous) => {
          if (rebind === undefined) throw new HoldpointError("invalid_phase", `agent ${name} does not re-bind`);
          await rebind({ ...session, seed, previousSeed: await parsedSeed(name, schema, previous) });
        },
        activate: (context) => activate(agentSession(context, seed)),
      };
    },
  };
}

function declared(hook: string) {
  const message = `it is declared and is no function: give the hook, or leave ${hook} out`;
  return { code: "custom" as const, path: [hook], message };
}

function neverCalled(hook: string) {
  const words = `mode is "restart_only", which is also the default, and never calls it: no checkpoint holds such a session`;
  return { code: "custom" as const, path: [hook], message: `${words}; say mode: "exported", or leave ${hook} out` };
}
