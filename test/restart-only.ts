/** A resources server whose definition says nothing of its mode: no checkpoint holds anything of it. */
import { defineResources, runResources } from "@holdpoint/participant";
import * as z from "zod";

const plain = defineResources({
  name: "plain",
  seed: z.looseObject({}),
  tools: {
    look: {
      description: "Looks.",
      input: z.strictObject({}),
      repeats: true,
      run: async () => ({ result: "there is nothing" }),
    },
  },
  verify: { run: async () => ({ reward: 0 }) },
});

await runResources(plain);
