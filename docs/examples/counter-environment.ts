/** An environment in one file: it takes an episode through its steps, and says what it was worth. */
import { defineEnvironment, runEnvironment } from "@holdpoint/participant";
import * as z from "zod";

export const counting = defineEnvironment({
  name: "counting",
  mode: "exported",
  task: z.strictObject({ target: z.int().min(0) }),
  run: async (episode) => {
    await episode.seed();
    await episode.invokeAgent();
    await episode.closeAgent();
    const { reward } = await episode.verify();
    return { reward };
  },
});

if (import.meta.main) await runEnvironment(counting);
