/** What the resources server answers and obeys. */
import { type AnyMethod, type Entrance, method } from "@holdpoint/participant";
import { CloseRequest, SeedRequest, ToolRequest, VerifyRequest } from "@holdpoint/schemas";
import { Checkpointing } from "./checkpointing.ts";
import { close, retire } from "./ending.ts";
import { Recovery } from "./recovery.ts";
import { seed } from "./seeding.ts";
import { ToolCalls } from "./tool-calls.ts";
import { Tools } from "./tools.ts";
import { verify } from "./verifying.ts";
import type { Workshop } from "./workshop.ts";

/** How a tool call comes in of an episode that a checkpoint can hold. */
const toolEntrance: Entrance = { whileClosed: "held", blocks: "tool call in flight" };

/** Goes on with the sessions of the log, and serves. */
export async function serve(workshop: Workshop): Promise<void> {
  const recovery = new Recovery(workshop);
  await recovery.start();
  await workshop.participant.serve({
    methods: methodsOf(workshop),
    hooks: {
      ...new Checkpointing(workshop).hooks,
      blockers: () => recovery.blockers,
      retire: async (marks) => {
        await retire(workshop, marks);
        return [];
      },
    },
  });
}

function methodsOf(workshop: Workshop): Readonly<Record<string, AnyMethod>> {
  const calls = new ToolCalls(workshop, new Tools(workshop.provider, workshop.tests));
  return {
    seed: method({
      body: SeedRequest,
      whileClosed: "held",
      seeds: true,
      blocks: "seed in flight",
      handle: (episode, request) => seed(workshop, episode, request),
    }),
    tool: method({
      body: ToolRequest,
      whileClosed: "through", // what the call says decides
      handle: async (episode, { restart = false, ...request }) => {
        const entrance: Entrance = restart ? { whileClosed: "through" } : toolEntrance;
        const call = () => calls.answer(episode, request);
        return { result: await workshop.participant.admission.enter(episode, entrance, call) };
      },
    }),
    verify: method({
      body: VerifyRequest,
      whileClosed: "through",
      handle: async (episode) => ({ verdict: await verify(workshop, episode) }),
    }),
    close: method({
      body: CloseRequest,
      whileClosed: "through",
      ends: true,
      handle: async (episode) => {
        await close(workshop, episode);
        return {};
      },
    }),
  };
}
