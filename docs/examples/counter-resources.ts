/**
 * A resources server in one file: each episode has a counter, and is to bring it to a target.
 *
 * Run it beside a coordinator: `node docs/examples/counter-resources.ts`.
 */
import { defineResources, runResources } from "@holdpoint/participant";
import * as z from "zod";

export const counter = defineResources({
  name: "counter",
  mode: "exported",
  seed: z.looseObject({ target: z.int() }),
  state: {
    open: () => ({ count: 0 }),
    evolve: ({ count }, by) => ({ count: count + z.int().parse(by) }),
  },
  tools: {
    add: {
      description: "Adds a whole number to the counter.",
      input: z.strictObject({ by: z.int() }),
      repeats: true, // it changes nothing but the counter
      run: async ({ state: { count }, input: { by } }) => ({ result: `the counter is ${count + by}`, change: by }),
    },
    read: {
      description: "Reads the counter.",
      input: z.strictObject({}),
      repeats: true,
      run: async ({ state: { count } }) => ({ result: `the counter is ${count}` }),
    },
  },
  verify: {
    mode: "replay",
    run: async ({ state: { count }, seed: { target } }) => ({ reward: count === target ? 1 : 0, count }),
  },
  grants: { ttlMs: 3_600_000 },
});

if (import.meta.main) await runResources(counter);
