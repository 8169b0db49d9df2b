/** How an agent is written whose work is done outside of this process, by a harness that knows nothing of checkpoints. */
import type { Access, Episode, Json } from "@holdpoint/schemas";
import * as z from "zod";
import { ours } from "../author-code.ts";
import { checkDefinition, Hook, type ModeChoice, SchemaHook } from "../definition.ts";
import type { ActivationContext } from "./activation.ts";
import { type AgentDefinition, parsedSeed } from "./agent-definition.ts";
import { definitionMode } from "./define-agent.ts";
import type { Harness } from "./harness.ts";
import { runHarness } from "./harness-run.ts";

/** What a harness is launched, or found again, with. What its hooks throw ends the activation as what `activate` of `defineAgent` throws. */
export interface HarnessSession<Seed> {
  readonly episode: Episode;
  /** The same for every attempt. */
  readonly sessionId: string;
  readonly seed: Seed;
  readonly policyVersion: number;
  /** What `state` gave of the harness that it goes on from; undefined: it runs from its start. */
  readonly continuation: Json | undefined;
  /** Aborted when the session is retired or closed. */
  readonly signal: AbortSignal;
  /** How it reaches its tools, where the resources server grants that. */
  readonly access: Access | undefined;
  /** Access anew: before it expires. */
  renewAccess(): Promise<Access>;
}

export interface OpaqueAgentInput<Seed> {
  /** For messages. */
  readonly name: string;
  /**
   * As for `defineAgent`. In mode `exported` a harness gives its `state`. In mode `stateless` each session is a restart: nothing that
   * a checkpoint holds says what its harness has done. Default: `restart_only`.
   */
  readonly mode?: ModeChoice;
  /** A seed that it refuses is refused as `invalid_request`. Default: any JSON. */
  readonly seed?: z.ZodType<Seed>;
  /** Starts a harness. It counts once its handle is in the log: one whose process dies before that is not looked for. */
  readonly launch: (session: HarnessSession<Seed>) => Promise<Harness>;
  /** The harness of this handle; undefined where it is gone. Absent: none outlives its process. */
  readonly find?: (handle: string, session: HarnessSession<Seed>) => Promise<Harness | undefined>;
}

const Shape = z.strictObject({
  name: z.string().min(1),
  mode: definitionMode.optional(),
  seed: SchemaHook.optional(),
  launch: Hook.refine((hook) => hook.length <= 1, { error: "expected a function of the session alone" }),
  find: Hook.refine((hook) => hook.length <= 2, {
    error: "expected a function of a handle and the session",
  }).optional(),
});

/**
 * Defines an agent that drives harnesses.
 *
 * @throws HoldpointError `invalid_request` that names what is wrong with the definition
 */
export function defineOpaqueAgent<Seed = Json>(input: OpaqueAgentInput<Seed>): AgentDefinition {
  checkDefinition("defineOpaqueAgent", Shape, input);
  const { name, mode = "restart_only", seed: schema, launch, find } = input;
  return {
    name,
    mode,
    slots: undefined,
    isOpaque: true,
    rebinds: true, // a replacement attempt's harness is launched with what that attempt was seeded with
    bind: async (given) => {
      const seed = await parsedSeed(name, schema ?? anySeed<Seed>(), given);
      return {
        restart: (_, found) => (found === "stateless" ? `harnesses of ${name} give no state in mode stateless` : null),
        rebind: async () => {},
        activate: (context) => {
          const session = harnessSession(context, seed);
          const finds = find === undefined ? undefined : (handle: string) => find(handle, session);
          return runHarness({ name, launch: () => launch(session), find: finds }, context);
        },
      };
    },
  };
}

/** Every seed is JSON: it came over the wire. */
function anySeed<Seed>(): z.ZodType<Seed> {
  return z.custom<Seed>();
}

function harnessSession<Seed>(context: ActivationContext, seed: Seed): HarnessSession<Seed> {
  const { episode, state, policyVersion, continuation, signal, access, renewAccess } = context;
  return {
    episode,
    sessionId: state.sessionId,
    seed,
    policyVersion,
    continuation,
    signal,
    get access() {
      return access();
    },
    renewAccess: () => ours(renewAccess),
  };
}
