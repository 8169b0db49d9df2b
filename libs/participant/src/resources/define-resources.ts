/** A definition, checked, with the types of its author forgotten: it parses what it is given, and checks what it gives. */
import { HoldpointError } from "@holdpoint/errors";
import { Json, type Mode, type SeedTerms, StepMode, Token } from "@holdpoint/schemas";
import * as z from "zod";
import { checkDefinition, chosenMode, Hook, hookOf, SchemaHook } from "../definition.ts";
import { frozen } from "./frozen.ts";
import type { ResourcesDefinition, ToolDefinition } from "./definition.ts";
import type { ExternalState, SessionName } from "./external-hooks.ts";

/** A state, or a change, rests in one event, and a message of the log holds 512 KiB. */
const maxJsonBytes = 262_144;

interface PreparedCall {
  readonly state: Json;
  readonly session: SessionName;
  readonly signal: AbortSignal;
}

export interface CheckedOutcome {
  readonly result: string;
  readonly change: Json | undefined;
  readonly isError: boolean;
}

export type PreparedTool = (call: PreparedCall) => Promise<CheckedOutcome>;

export interface CheckedTool {
  readonly description: string;
  /** JSON schema of an object. */
  readonly inputSchema: { readonly type: "object"; readonly [name: string]: unknown };
  readonly repeats: boolean;
  /** What runs the tool on `input`; `wrong` where it is not what the tool takes. @throws what the author's schema throws */
  readonly prepare: (input: unknown) => Promise<PreparedTool | { readonly wrong: string }>;
}

interface PreparedVerification extends PreparedCall {
  /** As `session.seeded` has it. */
  readonly seed: unknown;
  readonly output: string | undefined;
}

/** What `defineResources` gives: to be run, or served on a participant. */
export interface Resources {
  readonly name: string;
  /** @throws HoldpointError `invalid_request` where the definition finds none */
  readonly mode: () => Promise<Mode>;
  readonly terms: SeedTerms;
  /**
   * The state that a session of `seed` begins with; frozen.
   *
   * @throws HoldpointError `invalid_request` where the seed is not what the definition takes, or the state no JSON
   */
  readonly open: (seed: unknown) => Promise<Json>;
  /** @throws HoldpointError `invalid_request` where the seed is not what the definition takes */
  readonly checkSeed: (seed: unknown) => Promise<void>;
  /** @throws what `state.evolve` throws, and HoldpointError `invalid_request` where it gives nothing */
  readonly evolve: (state: Json, change: Json) => Json;
  readonly tools: ReadonlyMap<string, CheckedTool>;
  /** The verdict, as it is recorded. */
  readonly verify: (verification: PreparedVerification) => Promise<Json>;
  readonly grantTtlMs: number | undefined;
  readonly external: ExternalState | undefined;
}

const ToolShape = z.strictObject({
  description: z.string().min(1),
  input: SchemaHook,
  repeats: z.boolean().optional(),
  run: hookOf("call, as in run: ({ state, input }) => …,"),
});

const externalHooks = {
  open: Hook,
  capture: Hook,
  install: Hook,
  free: Hook,
  release: Hook.optional(),
};

/** An object of a class may have more than hooks; in a plain one that is a misspelt hook. */
const ExternalShape = z
  .unknown()
  .superRefine((given, context) => {
    if (!isPlain(given)) return;
    const names = Object.keys(externalHooks);
    for (const key of Object.keys(given).filter((one) => !names.includes(one))) {
      const message = `there is no such hook: expected ${names.join(", ")}`;
      context.addIssue({ code: "custom", path: [key], message });
    }
  })
  .pipe(z.looseObject(externalHooks));

function isPlain(given: unknown): given is object {
  return typeof given === "object" && given !== null && Object.getPrototypeOf(given) === Object.prototype;
}

/** Tools are part of what calls are named by. */
function nameable(tools: object, context: z.RefinementCtx): void {
  for (const name of Object.keys(tools).filter((one) => !Token.safeParse(one).success)) {
    const message = `expected 1 to 128 of A-Z a-z 0-9 _ - as the name of a tool, found ${JSON.stringify(name)}`;
    context.addIssue({ code: "custom", path: [], message });
  }
}

const DefinitionShape = z
  .strictObject({
    name: z.string().min(1),
    mode: z.union([z.enum(["exported", "stateless", "restart_only"]), Hook]).optional(),
    seed: SchemaHook,
    state: z.strictObject({ open: Hook, evolve: Hook }).optional(),
    tools: z.record(z.string(), ToolShape).superRefine(nameable),
    verify: z.strictObject({ mode: StepMode.optional(), run: Hook }),
    grants: z.strictObject({ ttlMs: z.int().positive() }).optional(),
    external: ExternalShape.optional(),
    lends: z.boolean().optional(),
  })
  .check(({ value, issues }) => {
    const mode = value.mode ?? "restart_only";
    const refuse = (path: string, message: string) =>
      issues.push({ code: "custom", path: [path], message, input: value });
    if (value.lends === true && value.external === undefined) {
      refuse(
        "lends",
        "a lent sandbox is external state: expected `external` with the hooks that set it up and free it",
      );
    }
    if (mode === "stateless" && (value.state !== undefined || value.external !== undefined)) {
      refuse(
        "mode",
        "`stateless` holds nothing, and there is `state` or `external`: expected `exported`, or leave it out",
      );
    }
    if (mode === "restart_only" && value.external !== undefined) {
      refuse(
        "external",
        "`restart_only`, which is the default mode, never captures nor installs: expected mode `exported`",
      );
    }
  });

/**
 * Defines a resources server.
 *
 * @throws HoldpointError `invalid_request` that names the definition and all that is wrong with it
 */
export function defineResources<State extends Json, Seed, Inputs>(
  definition: ResourcesDefinition<State, Seed, Inputs>,
): Resources {
  checkDefinition("defineResources", DefinitionShape, definition);
  const { name, mode = "restart_only", state, verify, grants, external, lends = false } = definition;
  const read = readerOf(definition);
  const modes = external === undefined && state === undefined ? modesOf.nothing : modesOf.state;
  return {
    name,
    mode: () => chosenMode(name, mode, modes),
    terms: {
      verify: verify.mode ?? "wait",
      rebinds: false,
      sandboxLent: lends,
      grantsBound: grants !== undefined,
    },
    ...stateOf(definition, read),
    tools: toolsOf(definition, read),
    verify: verifyOf(definition, read),
    grantTtlMs: grants?.ttlMs,
    external,
  };
}

/** By what a session holds. */
const modesOf = {
  nothing: ["exported", "stateless", "restart_only"],
  state: ["exported", "restart_only"],
} as const satisfies Record<string, readonly Mode[]>;

/** Takes a state for what the author's functions expect, and freezes it. */
type Reader<State> = (state: Json) => State;

/** What stands in the log as a session's state is what the definition itself has made. */
function readerOf<State extends Json, Seed, Inputs>(of: ResourcesDefinition<State, Seed, Inputs>): Reader<State> {
  const isOwn = (state: Json): state is State => of.state !== undefined || state === null;
  return (state) => {
    if (isOwn(state)) return frozen(state);
    throw wrong(`${of.name}: a session has a state, and the definition has none any more`);
  };
}

function stateOf<State extends Json, Seed, Inputs>(
  { name, seed: schema, state }: ResourcesDefinition<State, Seed, Inputs>,
  read: Reader<State>,
): Pick<Resources, "open" | "evolve" | "checkSeed"> {
  return {
    checkSeed: async (value) => void (await parsedAs(schema, value, `the seed of ${name}`)),
    open: async (value) => {
      const seed = await parsedAs(schema, value, `the seed of ${name}`);
      if (state === undefined) return null;
      return frozen(await jsonOf(await state.open(seed), `${name}: state.open`));
    },
    evolve: (before, change) => {
      if (state === undefined) throw wrong(`${name}: a tool gave a change, and the definition has no state`);
      const next: Json | undefined = state.evolve(read(before), change);
      if (next === undefined) throw wrong(`${name}: state.evolve gave nothing; expected the state after the change`);
      return frozen(next);
    },
  };
}

function toolsOf<State extends Json, Seed, Inputs>(
  { name, tools }: ResourcesDefinition<State, Seed, Inputs>,
  read: Reader<State>,
): ReadonlyMap<string, CheckedTool> {
  const checked = new Map<string, CheckedTool>();
  for (const tool in tools) checked.set(tool, checkedTool(tools[tool], `${JSON.stringify(name)}: tools.${tool}`, read));
  return checked;
}

const Outcome = z.strictObject({ result: z.string(), change: Json.optional(), isError: z.boolean().optional() });

function checkedTool<State extends Json, Input>(
  { description, input, repeats = false, run }: ToolDefinition<State, Input>,
  title: string,
  read: Reader<State>,
): CheckedTool {
  return {
    description,
    inputSchema: schemaOf(input, title),
    repeats,
    prepare: async (value) => {
      const parsed = await input.safeParseAsync(value);
      if (!parsed.success) return { wrong: `wrong arguments: ${z.prettifyError(parsed.error)}` };
      return async ({ state, session, signal }) => {
        const given = await run({ state: read(state), input: parsed.data, session, signal });
        const outcome = Outcome.safeParse(given);
        if (!outcome.success) throw new TypeError(`${title}: run gave no outcome: ${z.prettifyError(outcome.error)}`);
        const { result, change, isError = false } = outcome.data;
        const why = change === undefined ? undefined : tooLarge(change, `${title}: change`);
        if (why !== undefined) throw new TypeError(why);
        return { result, change, isError };
      };
    },
  };
}

const ObjectSchema = z.looseObject({ type: z.literal("object") });

function schemaOf(input: z.ZodType, title: string): CheckedTool["inputSchema"] {
  const words = `defineResources ${title}.input: expected what JSON schema can say, with an object at its top`;
  try {
    return ObjectSchema.parse(z.toJSONSchema(input, { io: "input" }));
  } catch (error) {
    throw new HoldpointError("invalid_request", words, { cause: error });
  }
}

const Verdict = z.object({ reward: z.number() }).catchall(Json);

function verifyOf<State extends Json, Seed, Inputs>(
  { name, seed: schema, verify }: ResourcesDefinition<State, Seed, Inputs>,
  read: Reader<State>,
): Resources["verify"] {
  return async ({ state, seed, output, session, signal }) => {
    const given = await verify.run({
      state: read(state),
      seed: await parsedAs(schema, seed, `the seed of ${name}`),
      output,
      session,
      signal,
    });
    return parsedAs(
      Verdict,
      given,
      `the verdict of ${name}: expected JSON with a number as reward, not what verify.run gave`,
    );
  };
}

async function parsedAs<T>(schema: z.ZodType<T>, value: unknown, title: string): Promise<T> {
  const parsed = await schema.safeParseAsync(value);
  if (parsed.success) return parsed.data;
  throw wrong(`${title}: ${z.prettifyError(parsed.error)}`);
}

/** @throws HoldpointError `invalid_request` where `value` is no JSON, or more than an event holds */
async function jsonOf(value: unknown, title: string): Promise<Json> {
  const json = await parsedAs(Json, value, title);
  const why = tooLarge(json, title);
  if (why === undefined) return json;
  throw wrong(why);
}

/** Why an event does not hold it; undefined where it does. */
function tooLarge(json: Json, title: string): string | undefined {
  const bytes = Buffer.byteLength(JSON.stringify(json));
  if (bytes <= maxJsonBytes) return undefined;
  return `${title}: ${bytes} bytes of JSON; expected at most ${maxJsonBytes}: keep what is large in external state`;
}

function wrong(message: string): HoldpointError {
  return new HoldpointError("invalid_request", message);
}
