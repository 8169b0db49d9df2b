/** An agent whose definition is refused when its file is loaded. */
import { defineAgent, runAgent } from "@holdpoint/participant";
import * as z from "zod";

const Mode = z.custom<"exported">((mode) => typeof mode === "string");

await runAgent(
  defineAgent({ name: "misspelt", mode: Mode.parse("exprted"), seed: z.unknown(), activate: async () => "done" }),
);
