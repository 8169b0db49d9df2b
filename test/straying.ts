/** Participants of one file whose code leaves failures that nobody catches, where the task says so. */
import {
  defineAgent,
  defineEnvironment,
  defineModel,
  defineResources,
  messageText,
  runAgent,
  runEnvironment,
  runModel,
  runResources,
} from "@holdpoint/participant";
import { existsSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import * as z from "zod";

const Task = z.strictObject({ where: z.string(), gate: z.string() });
const name = "straying";
const never = () => new Promise<never>(() => {});
const oops = (where: string) => new Error(`oops of ${where}`);

/** Thrown by a timer: whoever waits for what it was to bring waits for ever. */
function late(where: string): Promise<never> {
  setTimeout(() => {
    throw oops(where);
  }, 1);
  return never();
}

const environment = defineEnvironment({
  name,
  mode: "exported",
  task: Task,
  run: async (episode) => {
    await episode.seed();
    if (episode.task.where === "environment") await late("environment");
    await episode.invokeAgent();
    await episode.closeAgent();
    return { reward: (await episode.verify()).reward };
  },
});

const agent = defineAgent({
  name,
  mode: "exported",
  seed: Task,
  activate: async (session) => {
    const { where, gate } = session.seed;
    if (where === "rejection") void Promise.reject(oops(where));
    if (where === "timer") await late(where);
    if (where === "once" || where === "again") await session.tool(where, "{}");
    if (where === "none") await session.tool("wait", JSON.stringify({ gate }));
    return messageText(await session.model({ model: name, messages: [{ role: "user", content: where }] }));
  },
});

const nothing = z.strictObject({});
const resources = defineResources({
  name,
  mode: "exported",
  seed: Task,
  tools: {
    once: { description: "Strays.", input: nothing, run: () => late("once") },
    again: { description: "Strays.", input: nothing, repeats: true, run: () => late("again") },
    wait: {
      description: "Waits until a file is there.",
      input: z.strictObject({ gate: z.string() }),
      repeats: true,
      run: async ({ input: { gate }, signal }) => {
        while (!existsSync(gate)) await pause(5, undefined, { signal });
        return { result: "it is there" };
      },
    },
  },
  verify: { run: async ({ seed }) => (seed.where === "verify" ? late("verify") : { reward: 1 }) },
});

const model = defineModel({
  name,
  mode: "exported",
  policies: {
    names: () => [name],
    find: async () => ({
      version: 0,
      reply: ([asked]) =>
        asked?.["content"] === "policy" ? late("policy") : { message: { role: "assistant", content: "said" } },
    }),
  },
});

const roles = {
  environment: () => runEnvironment(environment),
  agent: () => runAgent(agent),
  resources: () => runResources(resources),
  model: () => runModel(model),
};
await roles[z.enum(["environment", "agent", "resources", "model"]).parse(process.env["NATS_USER"])]();
