/** The agent of the repair workload: asks the policy, calls the tools that it names, and stops when it names none. */
import { HoldpointError } from "@holdpoint/errors";
import { type AgentSession, defineAgent } from "@holdpoint/participant";
import { AssistantMessage, type ChatMessage, promptOf, seedOf, Task, toolDefinitions } from "@holdpoint/repair";
import * as z from "zod";

/** What an episode is seeded with: the task, and the run's seed. No attempt is in it. */
const RepairSeed = z.looseObject({ task: Task, seed: z.int().nonnegative() });
type RepairSeed = z.infer<typeof RepairSeed>;

/** The same conversation always gives the same bytes: the policy knows a call again by its request. */
async function repair(session: AgentSession<RepairSeed>): Promise<string> {
  const { episode, seed, policyVersion } = session;
  const messages: ChatMessage[] = [...promptOf(seed.task)];
  for (let turn = 0; ; turn++) {
    const answer = await session.model({
      model: `softmax@${policyVersion}`,
      messages,
      tools: toolDefinitions,
      seed: seedOf(seed.seed, episode.rollout, turn),
    });
    const message = AssistantMessage.parse(answer);
    const calls = message.tool_calls ?? [];
    if (calls.length === 0) return JSON.stringify(answer);
    messages.push(message);
    for (const { id, function: called } of calls) {
      const content = await session.tool(called.name, called.arguments);
      messages.push({ role: "tool", tool_call_id: id, content });
    }
  }
}

export const repairAgent = defineAgent({
  name: "repair",
  mode: "exported",
  seed: RepairSeed,
  /** Its tools know it by its episode: there is nothing to bind. The conversation that it goes on with is one about its task. */
  rebind: async ({ episode, seed, previousSeed }) => {
    if (JSON.stringify(seed) === JSON.stringify(previousSeed)) return;
    throw new HoldpointError("session_conflict", `${episode.rollout} was seeded with something else`);
  },
  activate: repair,
});
