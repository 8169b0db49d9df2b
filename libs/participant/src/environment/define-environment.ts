/** How an environment is written: a schema of its tasks, and a function that takes an episode through its steps. */
import { HoldpointError } from "@holdpoint/errors";
import type { Json } from "@holdpoint/schemas";
import * as z from "zod";
import { checkDefinition, Hook, type ModeChoice, SchemaHook } from "../definition.ts";

/** What the resources server says of the agent's work. The rest of it is for whoever trains. */
export const Verdict = z.looseObject({ reward: z.number() });
export type Verdict = z.infer<typeof Verdict>;

/** How an episode comes out that has come to its end. */
export const Outcome = z.strictObject({ reward: z.number() });
export type Outcome = z.infer<typeof Outcome>;

/** What each server is seeded with. The task as it was dispatched, where nothing else is said. */
export interface Seeds {
  readonly resources?: Json;
  readonly agent?: Json;
}

/**
 * The steps of an episode: each once, in this order, and awaited before the next. One that the log has finished already, in this
 * process or before a crash or a restore, returns what was recorded and is not done again.
 *
 * While a checkpoint is open an episode stands at the step that comes next. Between steps `run` may compute; that is done again
 * after a crash, so it must depend on nothing but the task and on what the steps have returned.
 *
 * Each throws a HoldpointError where a server refuses, and `invalid_phase` where it is not the step that comes next. A step that
 * has failed ends the episode as `failed`, whatever `run` makes of it: a failure of infrastructure is never a reward.
 */
export interface EpisodeSteps {
  /**
   * Makes the session of the resources server, then that of the agent. A restore repeats it inside a later step, with the same
   * seeds, where what was lent or granted to the attempt before has to be given anew.
   */
  seed(seeds?: Seeds): Promise<void>;
  /** @returns what the agent has come to */
  invokeAgent(): Promise<string>;
  /** Ends the agent's session. A checkpoint waits for it. */
  closeAgent(): Promise<void>;
  /** @returns what the resources server says of the agent's work */
  verify(): Promise<Verdict>;
}

export interface EpisodeRun<Task> extends EpisodeSteps {
  /** The same for every attempt. */
  readonly rollout: string;
  readonly sessionId: string;
  readonly task: Task;
  /** With which version of the policy the episode was dispatched. */
  readonly policyVersion: number;
  /** Aborted when the episode is over for `run`: its time is used up, it was retired, or a step has failed. */
  readonly signal: AbortSignal;
}

export const environmentModes = ["exported", "restart_only"] as const;
export type EnvironmentMode = (typeof environmentModes)[number];

export interface EnvironmentInput<Task> {
  /** For messages. */
  readonly name: string;
  /**
   * `exported`: its episodes are in checkpoints. Default `restart_only`: none is, and each starts over after a restore.
   */
  readonly mode?: ModeChoice<EnvironmentMode>;
  /** A dispatch whose task it refuses is refused as `invalid_request`. */
  readonly task: z.ZodType<Task>;
  /**
   * Takes the episode through its steps. What it throws ends the episode as `failed`, and is why; so does what it throws late, where
   * nobody catches it, but its words stay in the log of this process.
   *
   * Default: the four steps; the reward is the verdict's.
   */
  readonly run?: (episode: EpisodeRun<Task>) => Promise<Outcome>;
}

/** All but the task, whose type only the definition knows. */
export type UntaskedRun = Omit<EpisodeRun<unknown>, "task">;

/** An environment, for `runEnvironment` and `serveEnvironment`. */
export interface EnvironmentDefinition {
  readonly name: string;
  readonly mode: ModeChoice<EnvironmentMode>;
  /**
   * The definition's `run` for one task.
   *
   * @throws HoldpointError `invalid_request` where it is no task of this environment, or, from the run, no outcome
   */
  readonly bind: (task: unknown) => Promise<(episode: UntaskedRun) => Promise<Outcome>>;
}

const Shape = z.strictObject({
  name: z.string().min(1),
  mode: z
    .union([z.enum(environmentModes), Hook], {
      error: `expected "exported", "restart_only", or a function that finds which; an environment owns where every episode stands, so it is never stateless`,
    })
    .optional(),
  task: SchemaHook,
  run: Hook.refine((run) => run.length <= 1, { error: "expected a function of the episode alone" }).optional(),
});

/**
 * Defines an environment.
 *
 * @throws HoldpointError `invalid_request` that names what is wrong with the definition
 */
export function defineEnvironment<Task>(input: EnvironmentInput<Task>): EnvironmentDefinition {
  checkDefinition("defineEnvironment", Shape, input);
  const { name, mode = "restart_only", task: schema, run = runSteps } = input;
  return {
    name,
    mode,
    bind: async (given) => {
      const task = await parsed(name, schema, given);
      return async (episode) => checked(name, await run({ ...episode, task }));
    },
  };
}

async function runSteps(episode: EpisodeSteps): Promise<Outcome> {
  await episode.seed();
  await episode.invokeAgent();
  await episode.closeAgent();
  const { reward } = await episode.verify();
  return { reward };
}

async function parsed<Task>(name: string, schema: z.ZodType<Task>, given: unknown): Promise<Task> {
  const task = await schema.safeParseAsync(given).catch((cause: unknown) => {
    const words = `the task schema of environment ${name} threw, where it has to say what is wrong`;
    throw new HoldpointError("invalid_request", words, { cause });
  });
  if (task.success) return task.data;
  throw new HoldpointError("invalid_request", `no task of environment ${name}:\n${z.prettifyError(task.error)}`);
}

function checked(name: string, given: unknown): Outcome {
  const outcome = Outcome.safeParse(given);
  if (outcome.success) return outcome.data;
  const words = `what run of environment ${name} returned is no outcome; expected { reward: number }`;
  throw new HoldpointError("invalid_request", `${words}:\n${z.prettifyError(outcome.error)}`);
}
