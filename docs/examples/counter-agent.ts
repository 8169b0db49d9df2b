/** An agent in one file: asks the policy, calls the tools that it names, and stops when it names none. */
import { defineAgent, messageText, runAgent } from "@holdpoint/participant";
import * as z from "zod";

export const solver = defineAgent({
  name: "solver",
  mode: "exported",
  seed: z.looseObject({ target: z.int() }),
  rebind: async () => {}, // it keeps nothing of its grants: a replacement attempt goes on with new ones
  activate: async (session) => {
    const messages: object[] = [{ role: "user", content: String(session.seed.target) }];
    for (;;) {
      const answer = await session.model({ model: "counting", messages });
      messages.push(answer);
      const calls = answer.tool_calls ?? [];
      if (calls.length === 0) return messageText(answer);
      for (const { id, function: called } of calls) {
        const content = await session.tool(called.name, called.arguments);
        messages.push({ role: "tool", tool_call_id: id, content });
      }
    }
  },
});

if (import.meta.main) await runAgent(solver);
